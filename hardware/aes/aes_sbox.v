// The AES S-box (FIPS 197 5.1.1) and its inverse (5.3.2) as logic.
//
// The forward circuit is Boyar's and Peralta's (A small depth-16 circuit for the AES S-box, and
// IACR ePrint 2009/191): 32 AND gates and 83 XOR or XNOR gates. The inverse is the same circuit between
// two linear maps: with S(x) = A(1/x), the inverse is A^-1(S(A^-1(y))).
`default_nettype none

module aes_sbox #(
    // 0: forward only, 1: both, selected by `inverse`.
    parameter INVERSE = 1
) (
    input  wire       inverse,
    input  wire [7:0] in,
    output wire [7:0] out
);
    // A^-1: the inverse of the affine map of FIPS 197 5.1.1.
    function [7:0] affine_inverse(input [7:0] x);
        affine_inverse = {x[6:0], x[7]} ^ {x[4:0], x[7:5]} ^ {x[1:0], x[7:2]} ^ 8'h05;
    endfunction

    wire invert = (INVERSE != 0) & inverse;
    wire [7:0] x = invert ? affine_inverse(in) : in;
    wire [7:0] s;
    assign out = invert ? affine_inverse(s) : s;

    // Names and order of the published circuit, where x0 and s0 are the most significant bits.
    wire x0 = x[7], x1 = x[6], x2 = x[5], x3 = x[4], x4 = x[3], x5 = x[2], x6 = x[1], x7 = x[0];

    // Linear layer at the top.
    wire y14 = x3 ^ x5;
    wire y13 = x0 ^ x6;
    wire y9 = x0 ^ x3;
    wire y8 = x0 ^ x5;
    wire t0 = x1 ^ x2;
    wire y1 = t0 ^ x7;
    wire y4 = y1 ^ x3;
    wire y12 = y13 ^ y14;
    wire y2 = y1 ^ x0;
    wire y5 = y1 ^ x6;
    wire y3 = y5 ^ y8;
    wire t1 = x4 ^ y12;
    wire y15 = t1 ^ x5;
    wire y20 = t1 ^ x1;
    wire y6 = y15 ^ x7;
    wire y10 = y15 ^ t0;
    wire y11 = y20 ^ y9;
    wire y7 = x7 ^ y11;
    wire y17 = y10 ^ y11;
    wire y19 = y10 ^ y8;
    wire y16 = t0 ^ y11;
    wire y21 = y13 ^ y16;
    wire y18 = x0 ^ y16;

    // Inversion in GF(2^8) as a tower of fields.
    wire t2 = y12 & y15;
    wire t3 = y3 & y6;
    wire t4 = t3 ^ t2;
    wire t5 = y4 & x7;
    wire t6 = t5 ^ t2;
    wire t7 = y13 & y16;
    wire t8 = y5 & y1;
    wire t9 = t8 ^ t7;
    wire t10 = y2 & y7;
    wire t11 = t10 ^ t7;
    wire t12 = y9 & y11;
    wire t13 = y14 & y17;
    wire t14 = t13 ^ t12;
    wire t15 = y8 & y10;
    wire t16 = t15 ^ t12;
    wire t17 = t4 ^ t14;
    wire t18 = t6 ^ t16;
    wire t19 = t9 ^ t14;
    wire t20 = t11 ^ t16;
    wire t21 = t17 ^ y20;
    wire t22 = t18 ^ y19;
    wire t23 = t19 ^ y21;
    wire t24 = t20 ^ y18;
    wire t25 = t21 ^ t22;
    wire t26 = t21 & t23;
    wire t27 = t24 ^ t26;
    wire t28 = t25 & t27;
    wire t29 = t28 ^ t22;
    wire t30 = t23 ^ t24;
    wire t31 = t22 ^ t26;
    wire t32 = t31 & t30;
    wire t33 = t32 ^ t24;
    wire t34 = t23 ^ t33;
    wire t35 = t27 ^ t33;
    wire t36 = t24 & t35;
    wire t37 = t36 ^ t34;
    wire t38 = t27 ^ t36;
    wire t39 = t29 & t38;
    wire t40 = t25 ^ t39;
    wire t41 = t40 ^ t37;
    wire t42 = t29 ^ t33;
    wire t43 = t29 ^ t40;
    wire t44 = t33 ^ t37;
    wire t45 = t42 ^ t41;
    wire z0 = t44 & y15;
    wire z1 = t37 & y6;
    wire z2 = t33 & x7;
    wire z3 = t43 & y16;
    wire z4 = t40 & y1;
    wire z5 = t29 & y7;
    wire z6 = t42 & y11;
    wire z7 = t45 & y17;
    wire z8 = t41 & y10;
    wire z9 = t44 & y12;
    wire z10 = t37 & y3;
    wire z11 = t33 & y4;
    wire z12 = t43 & y13;
    wire z13 = t40 & y5;
    wire z14 = t29 & y2;
    wire z15 = t42 & y9;
    wire z16 = t45 & y14;
    wire z17 = t41 & y8;

    // Linear layer at the bottom.
    wire t46 = z15 ^ z16;
    wire t47 = z10 ^ z11;
    wire t48 = z5 ^ z13;
    wire t49 = z9 ^ z10;
    wire t50 = z2 ^ z12;
    wire t51 = z2 ^ z5;
    wire t52 = z7 ^ z8;
    wire t53 = z0 ^ z3;
    wire t54 = z6 ^ z7;
    wire t55 = z16 ^ z17;
    wire t56 = z12 ^ t48;
    wire t57 = t50 ^ t53;
    wire t58 = z4 ^ t46;
    wire t59 = z3 ^ t54;
    wire t60 = t46 ^ t57;
    wire t61 = z14 ^ t57;
    wire t62 = t52 ^ t58;
    wire t63 = t49 ^ t58;
    wire t64 = z4 ^ t59;
    wire t65 = t61 ^ t62;
    wire t66 = z1 ^ t63;
    wire t67 = t64 ^ t65;
    wire s0 = t59 ^ t63;
    wire s6 = ~(t56 ^ t62);
    wire s7 = ~(t48 ^ t60);
    wire s3 = t53 ^ t66;
    wire s4 = t51 ^ t66;
    wire s5 = t47 ^ t65;
    wire s1 = ~(t64 ^ s3);
    wire s2 = ~(t55 ^ t67);
    assign s = {s0, s1, s2, s3, s4, s5, s6, s7};
endmodule

`default_nettype wire
