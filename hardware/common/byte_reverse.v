// Turns bytes round: between a stream, whose first byte is in the low bits, and a block, whose first byte is in the
// high ones.
`default_nettype none

module byte_reverse #(
    parameter BYTES = 16
) (
    input  wire [8*BYTES-1:0] in,
    output wire [8*BYTES-1:0] out
);
    genvar i;
    generate
        for (i = 0; i < BYTES; i = i + 1) begin : bytes
            assign out[8 * i +: 8] = in[8 * (BYTES - 1 - i) +: 8];
        end
    endgenerate
endmodule

`default_nettype wire
