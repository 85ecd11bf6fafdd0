// One round of AES, combinational: of the cipher (FIPS 197 5.1) or of the inverse cipher (5.3).
`default_nettype none

module aes_round #(
    parameter INVERSE = 1 // 0: encipher only
) (
    input  wire         inverse, // decipher
    input  wire         last,    // without MixColumns
    input  wire [127:0] in,      // FIPS 197's byte 0 is the most significant
    input  wire [127:0] key,
    output wire [127:0] out
);
    wire invert = (INVERSE != 0) & inverse;

    wire [127:0] substituted, keyed, mixed;
    genvar row, column;
    generate
        for (column = 0; column < 4; column = column + 1) begin : columns
            for (row = 0; row < 4; row = row + 1) begin : rows
                // ShiftRows moves row r by r columns, its inverse the other way. SubBytes commutes with it.
                localparam TO = 120 - 8 * (4 * column + row);
                localparam FORWARD = 120 - 8 * (4 * ((column + row) % 4) + row);
                localparam BACK = 120 - 8 * (4 * ((column + 4 - row) % 4) + row);
                aes_sbox #(.INVERSE(INVERSE)) sbox (
                    .inverse(invert),
                    .in(invert ? in[BACK +: 8] : in[FORWARD +: 8]),
                    .out(substituted[TO +: 8])
                );
            end
            // InvMixColumns stands behind AddRoundKey, MixColumns in front of it.
            aes_mix_column #(.INVERSE(INVERSE)) mix (
                .inverse(invert),
                .in(invert ? keyed[96 - 32 * column +: 32] : substituted[96 - 32 * column +: 32]),
                .out(mixed[96 - 32 * column +: 32])
            );
        end
    endgenerate
    assign keyed = substituted ^ key;
    assign out = last ? keyed : invert ? mixed : mixed ^ key;
endmodule

`default_nettype wire
