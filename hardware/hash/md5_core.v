// The compression of MD5 (RFC 1321 3.4), one step a cycle: 65 cycles a block. The ports are sha256_core's; words
// are little-endian.
`default_nettype none

module md5_core (
    input  wire         clk,
    input  wire         rst,
    input  wire         load,       // begin a message from `load_state`; only while `idle`
    input  wire [127:0] load_state, // a to d, a most significant
    input  wire         word_valid,
    output wire         word_ready,
    input  wire [31:0]  word,
    output wire         idle,
    output wire [127:0] state
);
    function [31:0] k(input [5:0] t);
        case (t)
            6'd0: k = 32'hd76aa478; 6'd1: k = 32'he8c7b756; 6'd2: k = 32'h242070db; 6'd3: k = 32'hc1bdceee;
            6'd4: k = 32'hf57c0faf; 6'd5: k = 32'h4787c62a; 6'd6: k = 32'ha8304613; 6'd7: k = 32'hfd469501;
            6'd8: k = 32'h698098d8; 6'd9: k = 32'h8b44f7af; 6'd10: k = 32'hffff5bb1; 6'd11: k = 32'h895cd7be;
            6'd12: k = 32'h6b901122; 6'd13: k = 32'hfd987193; 6'd14: k = 32'ha679438e; 6'd15: k = 32'h49b40821;
            6'd16: k = 32'hf61e2562; 6'd17: k = 32'hc040b340; 6'd18: k = 32'h265e5a51; 6'd19: k = 32'he9b6c7aa;
            6'd20: k = 32'hd62f105d; 6'd21: k = 32'h02441453; 6'd22: k = 32'hd8a1e681; 6'd23: k = 32'he7d3fbc8;
            6'd24: k = 32'h21e1cde6; 6'd25: k = 32'hc33707d6; 6'd26: k = 32'hf4d50d87; 6'd27: k = 32'h455a14ed;
            6'd28: k = 32'ha9e3e905; 6'd29: k = 32'hfcefa3f8; 6'd30: k = 32'h676f02d9; 6'd31: k = 32'h8d2a4c8a;
            6'd32: k = 32'hfffa3942; 6'd33: k = 32'h8771f681; 6'd34: k = 32'h6d9d6122; 6'd35: k = 32'hfde5380c;
            6'd36: k = 32'ha4beea44; 6'd37: k = 32'h4bdecfa9; 6'd38: k = 32'hf6bb4b60; 6'd39: k = 32'hbebfbc70;
            6'd40: k = 32'h289b7ec6; 6'd41: k = 32'heaa127fa; 6'd42: k = 32'hd4ef3085; 6'd43: k = 32'h04881d05;
            6'd44: k = 32'hd9d4d039; 6'd45: k = 32'he6db99e5; 6'd46: k = 32'h1fa27cf8; 6'd47: k = 32'hc4ac5665;
            6'd48: k = 32'hf4292244; 6'd49: k = 32'h432aff97; 6'd50: k = 32'hab9423a7; 6'd51: k = 32'hfc93a039;
            6'd52: k = 32'h655b59c3; 6'd53: k = 32'h8f0ccc92; 6'd54: k = 32'hffeff47d; 6'd55: k = 32'h85845dd1;
            6'd56: k = 32'h6fa87e4f; 6'd57: k = 32'hfe2ce6e0; 6'd58: k = 32'ha3014314; 6'd59: k = 32'h4e0811a1;
            6'd60: k = 32'hf7537e82; 6'd61: k = 32'hbd3af235; 6'd62: k = 32'h2ad7d2bb; default: k = 32'heb86d391;
        endcase
    endfunction

    reg [6:0] t; // the step; 64: the working variables are added to the state
    reg [511:0] block; // word 0 in the low bits
    reg [127:0] chain, work;
    wire takes_word = t < 7'd16;

    // Which word the step takes: t, 5t + 1, 3t + 5, 7t, each modulo 16.
    reg [3:0] chosen;
    always @*
        case (t[5:4])
            2'd0: chosen = t[3:0];
            2'd1: chosen = {t[1:0], 2'd0} + t[3:0] + 4'd1;
            2'd2: chosen = {t[2:0], 1'd0} + t[3:0] + 4'd5;
            default: chosen = {t[0], 3'd0} - t[3:0];
        endcase
    wire [31:0] w = takes_word ? word : block[{chosen, 5'd0} +: 32];

    wire [31:0] next;
    md5_step step (
        .number(t[5:0]), .a(work[127:96]), .b(work[95:64]), .c(work[63:32]), .d(work[31:0]),
        .word(w), .constant(k(t[5:0])), .next(next)
    );

    wire [127:0] added;
    genvar i;
    generate
        for (i = 0; i < 4; i = i + 1) begin : words
            assign added[32 * i +: 32] = chain[32 * i +: 32] + work[32 * i +: 32];
        end
    endgenerate

    assign idle = t == 7'd0;
    assign state = chain;
    assign word_ready = takes_word & ~load;
    always @(posedge clk) begin
        if (rst) begin
            t <= 7'd0;
            block <= 512'd0;
            chain <= 128'd0;
            work <= 128'd0;
        end else if (load) begin
            chain <= load_state;
            work <= load_state;
        end else if (t == 7'd64) begin
            t <= 7'd0;
            chain <= added;
            work <= added;
        end else if (word_valid | ~takes_word) begin
            t <= t + 7'd1;
            if (takes_word) block[{t[3:0], 5'd0} +: 32] <= word;
            work <= {work[31:0], next, work[95:32]};
        end
    end
endmodule

`default_nettype wire
