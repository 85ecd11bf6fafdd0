// One column of enc_round, enc_last_round, dec_round or dec_last_round: four S-boxes and one MixColumns, for a core
// that makes a round in four cycles. Words are little-endian: row 0 of a column is in the low byte.
`default_nettype none

module aes_column #(
    parameter INVERSE = 1 // 0: enc_round and enc_last_round only
) (
    input  wire [1:0]   kind,   // 0: enc_round, 1: enc_last_round, 2: dec_round, 3: dec_last_round
    input  wire [1:0]   column, // which is made
    input  wire [127:0] state,  // s[0] in the low bits
    input  wire [31:0]  key,    // the round key's word for the column
    output wire [31:0]  next
);
    wire invert = (INVERSE != 0) & kind[1];
    wire [31:0] substituted, mixed, mix_in, mix_out;
    genvar row;
    generate
        for (row = 0; row < 4; row = row + 1) begin : rows
            // Row r comes from r columns on, deciphering from r columns back (FIPS 197 5.1.2, 5.3.1).
            wire [1:0] from = invert ? column - row[1:0] : column + row[1:0];
            aes_sbox #(.INVERSE(INVERSE)) sbox (
                .inverse(invert), .in(state[{from, 5'd0} + 8 * row +: 8]), .out(substituted[8 * row +: 8])
            );
        end
    endgenerate
    // aes_mix_column has row 0 in the high byte. The equivalent inverse cipher mixes before it adds the key (5.3.5).
    byte_reverse #(.BYTES(4)) order_in (.in(substituted), .out(mix_in));
    aes_mix_column #(.INVERSE(INVERSE)) mix (.inverse(invert), .in(mix_in), .out(mix_out));
    byte_reverse #(.BYTES(4)) order_out (.in(mix_out), .out(mixed));
    assign next = (kind[0] ? substituted : mixed) ^ key;

    // Without the inverse all kinds encipher.
    wire unused = &{1'b0, kind[1]};
endmodule

`default_nettype wire
