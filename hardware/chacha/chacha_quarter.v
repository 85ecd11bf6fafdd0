// The quarter round of ChaCha (RFC 8439 2.1), combinational.
`default_nettype none

module chacha_quarter (
    input  wire [127:0] in, // a, b, c, d, a most significant
    output wire [127:0] out
);
    wire [31:0] a0 = in[127:96], b0 = in[95:64], c0 = in[63:32], d0 = in[31:0];
    wire [31:0] a1 = a0 + b0, x1 = d0 ^ a1, d1 = {x1[15:0], x1[31:16]};
    wire [31:0] c1 = c0 + d1, y1 = b0 ^ c1, b1 = {y1[19:0], y1[31:20]};
    wire [31:0] a2 = a1 + b1, x2 = d1 ^ a2, d2 = {x2[23:0], x2[31:24]};
    wire [31:0] c2 = c1 + d2, y2 = b1 ^ c2, b2 = {y2[24:0], y2[31:25]};
    assign out = {a2, b2, c2, d2};
endmodule

`default_nettype wire
