// MixColumns of one column (FIPS 197 5.1.3), and InvMixColumns (5.3.3) with the same circuit.
//
// The inverse matrix is the forward one times the circulant (5, 0, 4, 0), so that deciphering costs one
// further layer in front and not a second matrix.
`default_nettype none

module aes_mix_column #(
    // 0: forward only, 1: both, selected by `inverse`.
    parameter INVERSE = 1
) (
    input  wire        inverse,
    input  wire [31:0] in,  // row 0 in the most significant byte
    output wire [31:0] out
);
    // Times x in GF(2^8).
    function [7:0] double(input [7:0] x);
        double = {x[6:0], 1'b0} ^ (8'h1b & {8{x[7]}});
    endfunction

    wire invert = (INVERSE != 0) & inverse;
    wire [7:0] i0 = in[31:24], i1 = in[23:16], i2 = in[15:8], i3 = in[7:0];
    wire [7:0] four_even = invert ? double(double(i0 ^ i2)) : 8'd0;
    wire [7:0] four_odd = invert ? double(double(i1 ^ i3)) : 8'd0;
    wire [7:0] a = i0 ^ four_even, b = i1 ^ four_odd, c = i2 ^ four_even, d = i3 ^ four_odd;

    wire [7:0] all = a ^ b ^ c ^ d;
    assign out = {
        double(a ^ b) ^ all ^ a,
        double(b ^ c) ^ all ^ b,
        double(c ^ d) ^ all ^ c,
        double(d ^ a) ^ all ^ d
    };
endmodule

`default_nettype wire
