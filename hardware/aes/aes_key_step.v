// Four words of the AES key expansion (FIPS 197 5.2), forwards or backwards, combinational.
//
// `window` holds the last eight words w[i-8] to w[i-1], the latest in the low bits; AES-128 uses four
// of them, AES-192 six. Forwards it becomes w[i-4] to w[i+3], backwards (for what the key size uses)
// w[i-12] to w[i-5]. At most one of four consecutive words passes the S-boxes, so there are four.
`default_nettype none

module aes_key_step #(
    parameter BACKWARD = 1 // 0: forwards only
) (
    input  wire         backward,
    input  wire [1:0]   size,     // 0: 128, 1: 192, 2: 256 bits
    // Which of the four new words (forwards) or of the four that fall away (backwards) is special.
    input  wire         first_special, // word 0: RotWord, SubWord and Rcon; of AES-256 in turns SubWord alone
    input  wire         third_special, // word 2; AES-192 only
    input  wire         rotate,        // 0: SubWord alone
    input  wire [7:0]   rcon,
    input  wire [255:0] window,
    output wire [255:0] next
);
    wire back = (BACKWARD != 0) & backward;
    wire is_128 = size == 2'd0, is_192 = size == 2'd1;

    wire [31:0] w0 = window[255:224], w1 = window[223:192], w2 = window[191:160], w3 = window[159:128];
    wire [31:0] w4 = window[127:96], w5 = window[95:64], w6 = window[63:32], w7 = window[31:0];

    // The word that goes through the S-boxes. Forwards, word 2 of AES-192 needs word 1, which is new.
    wire [31:0] new1 = w3 ^ w2 ^ w7;
    wire [31:0] chosen_forward = third_special ? new1 : w7;
    wire [31:0] chosen_back = third_special ? w5 : is_128 ? w7 ^ w6 : w3;
    wire [31:0] chosen = back ? chosen_back : chosen_forward;
    wire [31:0] turned = rotate ? {chosen[23:0], chosen[31:24]} : chosen;
    wire [31:0] substituted;
    genvar i;
    generate
        for (i = 0; i < 4; i = i + 1) begin : bytes
            aes_sbox #(.INVERSE(0)) sbox (
                .inverse(1'b0), .in(turned[8 * i +: 8]), .out(substituted[8 * i +: 8])
            );
        end
    endgenerate
    wire [31:0] special = substituted ^ (rotate ? {rcon, 24'd0} : 32'd0);

    // Forwards: w[m] = w[m - Nk] ^ f(w[m - 1]).
    wire [31:0] f0 = (is_128 ? w4 : is_192 ? w2 : w0) ^ (first_special ? special : w7);
    wire [31:0] f1 = (is_128 ? w5 : is_192 ? w3 : w1) ^ f0;
    wire [31:0] f2 = (is_128 ? w6 : is_192 ? w4 : w2) ^ (third_special ? special : f1);
    wire [31:0] f3 = (is_128 ? w7 : is_192 ? w5 : w3) ^ f2;

    // Backwards: w[m - Nk] = w[m] ^ f(w[m - 1]) for the four latest words.
    wire [31:0] b3 = w7 ^ w6;
    wire [31:0] b2 = w6 ^ (third_special ? special : w5);
    wire [31:0] b1 = w5 ^ w4;
    wire [31:0] b0 = w4 ^ (first_special ? special : is_128 ? b3 : w3);
    wire [255:0] back_window = is_128 ? {128'd0, b0, b1, b2, b3}
                             : is_192 ? {64'd0, b0, b1, b2, b3, w2, w3}
                             : {b0, b1, b2, b3, w0, w1, w2, w3};

    assign next = back ? back_window : {w4, w5, w6, w7, f0, f1, f2, f3};
endmodule

`default_nettype wire
