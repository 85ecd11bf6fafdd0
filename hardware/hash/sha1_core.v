// The compression of SHA-1 (FIPS 180-4 6.1.2), one round a cycle: 81 cycles a block. The ports are sha256_core's.
`default_nettype none

module sha1_core (
    input  wire         clk,
    input  wire         rst,
    input  wire         load,       // begin a message from `load_state`; only while `idle`
    input  wire [159:0] load_state, // a to e, a most significant
    input  wire         word_valid,
    output wire         word_ready,
    input  wire [31:0]  word,
    output wire         idle,
    output wire [159:0] state
);
    reg [6:0] t; // the round; 80: the working variables are added to the state
    reg [511:0] schedule; // the last sixteen words, the oldest most significant
    reg [159:0] chain, work;
    wire [31:0] mixed = schedule[511:480] ^ schedule[447:416] ^ schedule[255:224] ^ schedule[95:64];
    wire takes_word = t < 7'd16;
    wire [31:0] w = takes_word ? word : {mixed[30:0], mixed[31]};

    wire [31:0] a = work[159:128], b = work[127:96], c = work[95:64], d = work[63:32], e = work[31:0];
    reg [31:0] f, k;
    always @* begin
        if (t < 7'd20) begin
            f = (b & c) ^ (~b & d);
            k = 32'h5a827999;
        end else if (t < 7'd40) begin
            f = b ^ c ^ d;
            k = 32'h6ed9eba1;
        end else if (t < 7'd60) begin
            f = (b & c) ^ (b & d) ^ (c & d);
            k = 32'h8f1bbcdc;
        end else begin
            f = b ^ c ^ d;
            k = 32'hca62c1d6;
        end
    end
    wire [31:0] next = {a[26:0], a[31:27]} + f + e + k + w;

    wire [159:0] added;
    genvar i;
    generate
        for (i = 0; i < 5; i = i + 1) begin : words
            assign added[32 * i +: 32] = chain[32 * i +: 32] + work[32 * i +: 32];
        end
    endgenerate

    assign idle = t == 7'd0;
    assign state = chain;
    assign word_ready = takes_word & ~load;
    always @(posedge clk) begin
        if (rst) begin
            t <= 7'd0;
            schedule <= 512'd0;
            chain <= 160'd0;
            work <= 160'd0;
        end else if (load) begin
            chain <= load_state;
            work <= load_state;
        end else if (t == 7'd80) begin
            t <= 7'd0;
            chain <= added;
            work <= added;
        end else if (word_valid | ~takes_word) begin
            t <= t + 7'd1;
            schedule <= {schedule[479:0], w};
            work <= {next, a, b[1:0], b[31:2], c, d};
        end
    end
endmodule

`default_nettype wire
