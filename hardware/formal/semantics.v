// What the combinational modules compute, as their standards say it, for the proofs of formal/prove.py: nothing of the
// cores is used here but the S-box, which is proved by itself and stands for any function in the other proofs.

// In front of or behind the affine map x and y are inverses in GF(2^8), or both zero (FIPS 197 5.1.1).
module aes_sbox_property (input inverse, input [7:0] in);
    function [7:0] times(input [7:0] a, input [7:0] b);
        integer i;
        begin
            times = 0;
            for (i = 7; i >= 0; i = i - 1)
                times = {times[6:0], 1'b0} ^ (times[7] ? 8'h1b : 8'h00) ^ (b[i] ? a : 8'h00);
        end
    endfunction
    // Equation 5.2: bit i is the sum of bits i, i + 4, i + 5, i + 6, i + 7 and of 63's.
    function [7:0] affine(input [7:0] x);
        integer i;
        for (i = 0; i < 8; i = i + 1)
            affine[i] = x[i] ^ x[(i + 4) % 8] ^ x[(i + 5) % 8] ^ x[(i + 6) % 8] ^ x[(i + 7) % 8] ^ (8'h63 >> i);
    endfunction
    wire [7:0] out;
    aes_sbox dut (.inverse(inverse), .in(in), .out(out));
    // y is free, and bound by the map.
    (* anyconst *) wire [7:0] y;
    wire [7:0] x = inverse ? out : in;
    always @* begin
        assume (affine(y) == (inverse ? in : out));
        assert (x == 0 ? y == 0 : times(x, y) == 8'h01);
    end
endmodule

module aes_mix_column_semantics (input inverse, input [31:0] in, output reg [31:0] out);
    function [7:0] times(input [7:0] a, input [3:0] b);
        integer i;
        begin
            times = 0;
            for (i = 3; i >= 0; i = i - 1)
                times = {times[6:0], 1'b0} ^ (times[7] ? 8'h1b : 8'h00) ^ (b[i] ? a : 8'h00);
        end
    endfunction
    // FIPS 197 5.1.3 and 5.3.3: row r of the matrix is the first one turned by r.
    wire [15:0] row = inverse ? 16'hebd9 : 16'h2311;
    integer r, c;
    reg [7:0] sum;
    always @*
        for (r = 0; r < 4; r = r + 1) begin
            sum = 0;
            for (c = 0; c < 4; c = c + 1)
                sum = sum ^ times(in[24 - 8 * c +: 8], row[12 - 4 * ((c + 4 - r) % 4) +: 4]);
            out[24 - 8 * r +: 8] = sum;
        end
endmodule

module add64_semantics (input [63:0] acc, input [31:0] rs1, input [31:0] rs2, output [63:0] acc_next);
    wire [63:0] halves1 = {48'd0, rs1[15:0]} + {48'd0, rs1[31:16]}, halves2 = {48'd0, rs2[15:0]} + {48'd0, rs2[31:16]};
    assign acc_next = acc + (halves1 + halves2);
endmodule

// The sum modulo 2^16 - 1 of four halves, zero only for zero: that is what folding to the end leaves.
module fold64_semantics (input [63:0] acc, output [31:0] rd, output [63:0] acc_next);
    wire [31:0] sum = acc[15:0] + acc[31:16] + acc[47:32] + acc[63:48];
    wire [31:0] rest = sum >= 32'd262140 ? sum - 32'd262140 : sum >= 32'd196605 ? sum - 32'd196605
                     : sum >= 32'd131070 ? sum - 32'd131070 : sum >= 32'd65535 ? sum - 32'd65535 : sum;
    assign rd = sum != 0 && rest == 0 ? 32'hffff : rest;
    assign acc_next = 0;
endmodule

module md5_iteration_semantics (
    input [5:0] selector, input [31:0] rs1, input [31:0] rs2, input [127:0] state, output [127:0] next
);
    wire [31:0] a = state[31:0], b = state[63:32], c = state[95:64], d = state[127:96];
    wire [1:0] round = selector[5:4];
    wire [31:0] f = round == 0 ? (b & c) | (~b & d) : round == 1 ? (d & b) | (~d & c)
                  : round == 2 ? b ^ c ^ d : c ^ (b | ~d);
    wire [31:0] sum = a + f + rs1 + rs2;
    wire [127:0] rounds = {32'h15_0f_0a_06, 32'h17_10_0b_04, 32'h14_0e_09_05, 32'h16_11_0c_07};
    wire [7:0] shift = rounds >> 8 * {round, selector[1:0]};
    wire [31:0] turned = sum << shift | sum >> (32 - shift);
    assign next = {c, b, b + turned, d};
endmodule

module zkne_zknd_semantics (
    input decrypt, input middle, input [1:0] bs, input [31:0] rs1, input [31:0] rs2, output [31:0] rd
);
    wire [7:0] s;
    wire [31:0] column;
    wire [7:0] one = rs2 >> 8 * bs;
    aes_sbox sbox (.inverse(decrypt), .in(one), .out(s));
    // The first column of the matrix times s, row 0 in the low byte.
    aes_mix_column_semantics mix (.inverse(decrypt), .in({s, 24'd0}), .out(column));
    wire [31:0] x = middle ? {column[7:0], column[15:8], column[23:16], column[31:24]} : {24'd0, s};
    assign rd = rs1 ^ (bs == 0 ? x : bs == 1 ? {x[23:0], x[31:24]} : bs == 2 ? {x[15:0], x[31:16]} : {x[7:0], x[31:8]});
endmodule

module zknh_semantics (input [3:0] operation, input [31:0] rs1, input [31:0] rs2, output reg [31:0] rd);
    function [31:0] ror32(input [31:0] x, input integer n);
        ror32 = x >> n | x << (32 - n);
    endfunction
    function [63:0] ror64(input [63:0] x, input integer n);
        ror64 = x >> n | x << (64 - n);
    endfunction
    // SHA-512's functions of a word whose halves are the two sources, as FIPS 180-4 4.1.3 has them: sig0h gives the high
    // half of the word {rs1, rs2}, sig0l the low half of {rs2, rs1}, sum0r the low half of {rs2, rs1}.
    wire [63:0] hl = {rs1, rs2}, lh = {rs2, rs1};
    wire [63:0] sig0_hl = ror64(hl, 1) ^ ror64(hl, 8) ^ hl >> 7, sig0_lh = ror64(lh, 1) ^ ror64(lh, 8) ^ lh >> 7;
    wire [63:0] sig1_hl = ror64(hl, 19) ^ ror64(hl, 61) ^ hl >> 6, sig1_lh = ror64(lh, 19) ^ ror64(lh, 61) ^ lh >> 6;
    wire [63:0] sum0 = ror64(lh, 28) ^ ror64(lh, 34) ^ ror64(lh, 39), sum1 = ror64(lh, 14) ^ ror64(lh, 18) ^ ror64(lh, 41);
    always @*
        case (operation)
            0: rd = ror32(rs1, 2) ^ ror32(rs1, 13) ^ ror32(rs1, 22);
            1: rd = ror32(rs1, 6) ^ ror32(rs1, 11) ^ ror32(rs1, 25);
            2: rd = ror32(rs1, 7) ^ ror32(rs1, 18) ^ rs1 >> 3;
            3: rd = ror32(rs1, 17) ^ ror32(rs1, 19) ^ rs1 >> 10;
            4: rd = sig0_hl[63:32];
            5: rd = sig0_lh[31:0];
            6: rd = sig1_hl[63:32];
            7: rd = sig1_lh[31:0];
            8: rd = sum0[31:0];
            default: rd = sum1[31:0];
        endcase
endmodule

module aes_column_semantics (
    input [1:0] kind, input [1:0] column, input [127:0] state, input [31:0] key, output [31:0] next
);
    wire [31:0] bytes, mixed;
    genvar r;
    generate
        for (r = 0; r < 4; r = r + 1) begin : rows
            // Row r of the four columns; it is turned to the left by r, and back when deciphering.
            wire [31:0] row = {state[96 + 8 * r +: 8], state[64 + 8 * r +: 8], state[32 + 8 * r +: 8], state[8 * r +: 8]};
            wire [1:0] from = kind[1] ? column - r : column + r;
            wire [7:0] one = from == 0 ? row[7:0] : from == 1 ? row[15:8] : from == 2 ? row[23:16] : row[31:24];
            aes_sbox sbox (.inverse(kind[1]), .in(one), .out(bytes[8 * r +: 8]));
        end
    endgenerate
    aes_mix_column_semantics mix (
        .inverse(kind[1]), .in({bytes[7:0], bytes[15:8], bytes[23:16], bytes[31:24]}), .out(mixed)
    );
    assign next = key ^ (kind[0] ? bytes : {mixed[7:0], mixed[15:8], mixed[23:16], mixed[31:24]});
endmodule
