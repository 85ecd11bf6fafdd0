// tkeep as a mask of bits, and as a number of bytes.
`default_nettype none

module keep_mask #(
    parameter BYTES = 16,
    parameter COUNT_BITS = 5
) (
    input  wire [BYTES-1:0]      keep,
    output wire [8*BYTES-1:0]    mask,
    output reg  [COUNT_BITS-1:0] count
);
    genvar i;
    generate
        for (i = 0; i < BYTES; i = i + 1) begin : bytes
            assign mask[8 * i +: 8] = {8{keep[i]}};
        end
    endgenerate

    // The kept bytes are the first ones: the count is the place of the first that is not kept.
    integer j;
    always @* begin
        count = BYTES[COUNT_BITS-1:0];
        for (j = BYTES - 1; j >= 0; j = j - 1)
            if (!keep[j]) count = j[COUNT_BITS-1:0];
    end
endmodule

`default_nettype wire
