// enc_round, enc_last_round, dec_round and dec_last_round at once: four times aes_column. The round key is fetched from
// memory (words) or comes from registers (aes_key_put): for the datapath that is the same.
`default_nettype none

module aes_round_instruction #(
    parameter INVERSE = 1 // 0: enc_round and enc_last_round only
) (
    input  wire [1:0]   kind,  // 0: enc_round, 1: enc_last_round, 2: dec_round, 3: dec_last_round
    input  wire [127:0] state, // s[0] in the low bits
    input  wire [127:0] words, // word[0], or key register 0, in the low bits
    output wire [127:0] next
);
    genvar i;
    generate
        for (i = 0; i < 4; i = i + 1) begin : columns
            aes_column #(.INVERSE(INVERSE)) one (
                .kind(kind), .column(i[1:0]), .state(state), .key(words[32 * i +: 32]), .next(next[32 * i +: 32])
            );
        end
    endgenerate
endmodule

`default_nettype wire
