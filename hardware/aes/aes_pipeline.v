// AES, enciphering only, a round a stage: a block a cycle, 15 cycles after it came in. Shorter keys pass the first
// stages unchanged, so that the delay is the same for all.
`default_nettype none

module aes_pipeline (
    input  wire         clk,
    input  wire         rst,
    // Key, see aes_key_store. Blocks in work when it changes are lost.
    input  wire         key_we,
    input  wire [3:0]   key_addr,
    input  wire [31:0]  key_data,
    input  wire         key_clear,
    output wire         key_ready,
    input  wire         flush,     // forget the blocks in work
    input  wire         in_valid,
    output wire         in_ready,
    input  wire [127:0] in_block,
    output wire         out_valid,
    input  wire         out_ready,
    output wire [127:0] out_block
);
    localparam ROUNDS = 14;

    wire [1:0] size;
    wire changed;
    wire [255:0] first_window;
    aes_key_store store (
        .clk(clk), .rst(rst), .key_we(key_we), .key_addr(key_addr), .key_data(key_data), .key_clear(key_clear),
        .size(size), .changed(changed), .window(first_window)
    );

    // Round keys are made once, one a cycle. Key n of a cipher of fewer rounds belongs to stage n + skipped.
    wire [3:0] skipped = size == 2'd0 ? 4'd4 : size == 2'd1 ? 4'd2 : 4'd0;
    reg [3:0] stage; // whose key comes next
    reg making, made;
    reg [255:0] window;
    reg [128*(ROUNDS+1)-1:0] keys;
    wire first_special, third_special, rotate;
    wire [7:0] rcon;
    aes_key_plan plan (
        .size(size), .step(stage - skipped),
        .first_special(first_special), .third_special(third_special), .rotate(rotate), .rcon(rcon)
    );
    wire [255:0] next_window;
    aes_key_step #(.BACKWARD(0)) key_step (
        .backward(1'b0), .size(size), .first_special(first_special), .third_special(third_special),
        .rotate(rotate), .rcon(rcon), .window(window), .next(next_window)
    );
    wire [127:0] round_key = size == 2'd0 ? window[127:0] : size == 2'd1 ? window[191:64] : window[255:128];

    integer k;
    always @(posedge clk) begin
        if (rst | key_clear) begin
            making <= 1'b0;
            made <= 1'b0;
            stage <= 4'd0;
            window <= 256'd0;
            keys <= {128*(ROUNDS+1){1'b0}};
        end else if (changed) begin
            making <= 1'b1;
            made <= 1'b0;
            stage <= skipped;
            window <= first_window;
        end else if (making) begin
            stage <= stage + 4'd1;
            window <= next_window;
            for (k = 0; k <= ROUNDS; k = k + 1)
                if (stage == k[3:0]) keys[128 * k +: 128] <= round_key;
            making <= stage != ROUNDS[3:0];
            made <= stage == ROUNDS[3:0];
        end
    end
    assign key_ready = made;

    // A full pipeline moves only when its last block is taken.
    wire advance = ~out_valid | out_ready;
    wire drop = rst | key_clear | changed | flush;
    assign in_ready = made & advance;

    // Stage 0 is AddRoundKey alone, by whichever key is the first.
    wire [127:0] first_key = size == 2'd0 ? keys[128 * 4 +: 128] : size == 2'd1 ? keys[128 * 2 +: 128]
                           : keys[0 +: 128];
    wire [127:0] blocks [0:ROUNDS];
    wire [ROUNDS:0] valid;
    reg [127:0] block_0;
    reg valid_0;
    always @(posedge clk) begin
        if (drop) valid_0 <= 1'b0;
        else if (advance) valid_0 <= in_valid & made;
        if (rst | key_clear) block_0 <= 128'd0;
        else if (advance) block_0 <= in_block ^ first_key;
    end
    assign blocks[0] = block_0;
    assign valid[0] = valid_0;

    genvar i;
    generate
        for (i = 1; i <= ROUNDS; i = i + 1) begin : stages
            wire [127:0] rounded;
            aes_round #(.INVERSE(0)) round (
                .inverse(1'b0), .last(i == ROUNDS), .in(blocks[i-1]), .key(keys[128 * i +: 128]), .out(rounded)
            );
            wire skip = i[3:0] <= skipped;
            reg [127:0] block;
            reg here;
            always @(posedge clk) begin
                if (drop) here <= 1'b0;
                else if (advance) here <= valid[i-1];
                if (rst | key_clear) block <= 128'd0;
                else if (advance) block <= skip ? blocks[i-1] : rounded;
            end
            assign blocks[i] = block;
            assign valid[i] = here;
        end
    endgenerate
    assign out_valid = valid[ROUNDS];
    assign out_block = blocks[ROUNDS];
endmodule

`default_nettype wire
