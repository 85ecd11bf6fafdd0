// Triple DES with three keys (FIPS 46-3, SP 800-67), a round a cycle: 49 cycles a block.
`default_nettype none

module triple_des_core (
    input  wire         clk,
    input  wire         rst,
    input  wire [191:0] keys, // the three, parity bits included and not looked at; the first most significant
    input  wire         in_valid,
    output wire         in_ready,
    input  wire         in_decrypt,
    input  wire [63:0]  in_block, // the first byte most significant
    output wire         out_valid,
    input  wire         out_ready,
    output wire [63:0]  out_block
);
    // Permuted choice 1: a key without its parity bits.
    /* verilator lint_off UNUSEDSIGNAL */
    function [55:0] choice_1(input [63:0] k);
        choice_1 = {
            k[7], k[15], k[23], k[31], k[39], k[47], k[55], k[63],
            k[6], k[14], k[22], k[30], k[38], k[46], k[54], k[62],
            k[5], k[13], k[21], k[29], k[37], k[45], k[53], k[61],
            k[4], k[12], k[20], k[28], k[1], k[9], k[17], k[25],
            k[33], k[41], k[49], k[57], k[2], k[10], k[18], k[26],
            k[34], k[42], k[50], k[58], k[3], k[11], k[19], k[27],
            k[35], k[43], k[51], k[59], k[36], k[44], k[52], k[60]
        };
    endfunction
    /* verilator lint_on UNUSEDSIGNAL */
    function [55:0] key_of_pass(input [191:0] all, input [1:0] pass, input decipher);
        case (decipher ? 2'd2 - pass : pass)
            2'd0: key_of_pass = choice_1(all[191:128]);
            2'd1: key_of_pass = choice_1(all[127:64]);
            default: key_of_pass = choice_1(all[63:0]);
        endcase
    endfunction

    reg busy, done;
    reg decrypt;
    reg [1:0] pass;
    reg [3:0] round;
    reg [31:0] l, r;
    reg [27:0] c, d;

    // A pass that enciphers turns the key to the left before each round, one that deciphers to the right, but not before
    // its first: sixteen rounds turn it once around.
    wire backward = decrypt ^ pass[0];
    wire by_one = round == 4'd0 | round == 4'd1 | round == 4'd8 | round == 4'd15;
    function [27:0] turned(input [27:0] half, input back, input one, input none);
        turned = none ? half
               : back ? (one ? {half[0], half[27:1]} : {half[1:0], half[27:2]})
               : (one ? {half[26:0], half[27]} : {half[25:0], half[27:26]});
    endfunction
    wire still = backward & round == 4'd0;
    wire [27:0] next_c = turned(c, backward, by_one, still);
    wire [27:0] next_d = turned(d, backward, by_one, still);
    wire [55:0] cd = {next_c, next_d};
    wire [47:0] key = {
        cd[42], cd[39], cd[45], cd[32], cd[55], cd[51], cd[53], cd[28],
        cd[41], cd[50], cd[35], cd[46], cd[33], cd[37], cd[44], cd[52],
        cd[30], cd[48], cd[40], cd[49], cd[29], cd[36], cd[43], cd[54],
        cd[15], cd[4], cd[25], cd[19], cd[9], cd[1], cd[26], cd[16],
        cd[5], cd[11], cd[23], cd[8], cd[12], cd[7], cd[17], cd[0],
        cd[22], cd[3], cd[10], cd[14], cd[6], cd[20], cd[27], cd[24]
    };
    wire [31:0] f;
    des_function des (.r(r), .key(key), .out(f));
    wire [31:0] next_r = l ^ f;

    wire [63:0] initial_permutation = {
        in_block[6], in_block[14], in_block[22], in_block[30], in_block[38], in_block[46], in_block[54], in_block[62],
        in_block[4], in_block[12], in_block[20], in_block[28], in_block[36], in_block[44], in_block[52], in_block[60],
        in_block[2], in_block[10], in_block[18], in_block[26], in_block[34], in_block[42], in_block[50], in_block[58],
        in_block[0], in_block[8], in_block[16], in_block[24], in_block[32], in_block[40], in_block[48], in_block[56],
        in_block[7], in_block[15], in_block[23], in_block[31], in_block[39], in_block[47], in_block[55], in_block[63],
        in_block[5], in_block[13], in_block[21], in_block[29], in_block[37], in_block[45], in_block[53], in_block[61],
        in_block[3], in_block[11], in_block[19], in_block[27], in_block[35], in_block[43], in_block[51], in_block[59],
        in_block[1], in_block[9], in_block[17], in_block[25], in_block[33], in_block[41], in_block[49], in_block[57]
    };
    wire [63:0] lr = {l, r};
    assign out_block = {
        lr[24], lr[56], lr[16], lr[48], lr[8], lr[40], lr[0], lr[32],
        lr[25], lr[57], lr[17], lr[49], lr[9], lr[41], lr[1], lr[33],
        lr[26], lr[58], lr[18], lr[50], lr[10], lr[42], lr[2], lr[34],
        lr[27], lr[59], lr[19], lr[51], lr[11], lr[43], lr[3], lr[35],
        lr[28], lr[60], lr[20], lr[52], lr[12], lr[44], lr[4], lr[36],
        lr[29], lr[61], lr[21], lr[53], lr[13], lr[45], lr[5], lr[37],
        lr[30], lr[62], lr[22], lr[54], lr[14], lr[46], lr[6], lr[38],
        lr[31], lr[63], lr[23], lr[55], lr[15], lr[47], lr[7], lr[39]
    };
    assign in_ready = ~busy & (~done | out_ready);
    assign out_valid = done & ~busy;

    always @(posedge clk) begin
        if (rst) begin
            busy <= 1'b0;
            done <= 1'b0;
            decrypt <= 1'b0;
            pass <= 2'd0;
            round <= 4'd0;
            {l, r} <= 64'd0;
            {c, d} <= 56'd0;
        end else if (in_valid & in_ready) begin
            busy <= 1'b1;
            done <= 1'b0;
            decrypt <= in_decrypt;
            pass <= 2'd0;
            round <= 4'd0;
            {l, r} <= initial_permutation;
            {c, d} <= key_of_pass(keys, 2'd0, in_decrypt);
        end else if (busy) begin
            round <= round + 4'd1;
            {l, r} <= {r, next_r};
            {c, d} <= cd;
            if (round == 4'd15) begin
                // The halves change places at the end; the permutations between two passes undo each other.
                {l, r} <= {next_r, r};
                {c, d} <= key_of_pass(keys, pass + 2'd1, decrypt);
                pass <= pass + 2'd1;
                busy <= pass != 2'd2;
                done <= pass == 2'd2;
            end
        end else if (out_ready) begin
            done <= 1'b0;
        end
    end
endmodule

`default_nettype wire
