// AES, one round a cycle: 11, 13 or 15 cycles a block for keys of 128, 192 or 256 bits. Round keys are made
// while they are used, forwards to encipher and backwards to decipher.
`default_nettype none

module aes_core #(
    parameter INVERSE = 1 // 0: encipher only, without the last round key's registers and the inverse circuits
) (
    input  wire         clk,
    input  wire         rst,
    // Key, see aes_key_store. A block in work when it changes is lost.
    input  wire         key_we,
    input  wire [3:0]   key_addr,
    input  wire [31:0]  key_data,
    input  wire         key_clear,
    output wire         key_ready,
    // Blocks; byte 0 of FIPS 197 is the most significant.
    input  wire         flush,      // forget the block in work
    input  wire         in_valid,
    output wire         in_ready,
    input  wire         in_inverse, // decipher
    input  wire [127:0] in_block,
    output wire         out_valid,
    input  wire         out_ready,
    output wire [127:0] out_block
);
    wire [1:0] size;
    wire changed;
    wire [255:0] first_window;
    aes_key_store store (
        .clk(clk), .rst(rst), .key_we(key_we), .key_addr(key_addr), .key_data(key_data), .key_clear(key_clear),
        .size(size), .changed(changed), .window(first_window)
    );

    localparam NO_KEY = 2'd0, PREPARE = 2'd1, IDLE = 2'd2, BUSY = 2'd3;
    reg [1:0] state;
    reg done;    // the block is finished and waits to be taken
    reg inverse; // of the block in work
    reg [3:0] step;
    reg [127:0] block;
    reg [255:0] window;

    wire [3:0] rounds = size == 2'd0 ? 4'd10 : size == 2'd1 ? 4'd12 : 4'd14;
    wire backward = (INVERSE != 0) & inverse & state == BUSY;
    wire first_special, third_special, rotate;
    wire [7:0] rcon;
    aes_key_plan plan (
        .size(size), .step(backward ? rounds - 4'd1 - step : step),
        .first_special(first_special), .third_special(third_special), .rotate(rotate), .rcon(rcon)
    );
    wire [255:0] next_window;
    aes_key_step #(.BACKWARD(INVERSE)) key_step (
        .backward(backward), .size(size), .first_special(first_special), .third_special(third_special),
        .rotate(rotate), .rcon(rcon), .window(window), .next(next_window)
    );

    // The round key in a window: its first four words that the key size uses.
    function [127:0] round_key(input [255:0] from, input [1:0] key_size);
        round_key = key_size == 2'd0 ? from[127:0] : key_size == 2'd1 ? from[191:64] : from[255:128];
    endfunction

    wire [127:0] next_block;
    aes_round #(.INVERSE(INVERSE)) round (
        .inverse(inverse), .last(step == rounds - 4'd1), .in(block), .key(round_key(next_window, size)),
        .out(next_block)
    );

    // Deciphering begins with the last window.
    wire [255:0] last_window;
    generate
        if (INVERSE != 0) begin : deciphers
            reg [255:0] kept;
            always @(posedge clk)
                if (rst | key_clear) kept <= 256'd0;
                else if (state == PREPARE && step == rounds) kept <= window;
            assign last_window = kept;
        end else begin : enciphers
            assign last_window = 256'd0;
        end
    endgenerate

    wire [255:0] start_window = (INVERSE != 0) & in_inverse ? last_window : first_window;
    assign key_ready = state == IDLE | state == BUSY;
    assign out_valid = done & state == BUSY;
    assign out_block = block;
    assign in_ready = state == IDLE | (out_valid & out_ready);

    always @(posedge clk) begin
        if (rst | key_clear) begin
            state <= NO_KEY;
            done <= 1'b0;
            inverse <= 1'b0;
            step <= 4'd0;
            block <= 128'd0;
            window <= 256'd0;
        end else if (changed) begin
            state <= (INVERSE != 0) ? PREPARE : IDLE;
            done <= 1'b0;
            step <= 4'd0;
            window <= first_window;
        end else if (state == PREPARE) begin
            step <= step + 4'd1;
            window <= next_window;
            if (step == rounds) state <= IDLE;
        end else if (flush) begin
            state <= key_ready ? IDLE : state;
            done <= 1'b0;
        end else if (in_valid & in_ready) begin
            state <= BUSY;
            done <= 1'b0;
            inverse <= (INVERSE != 0) & in_inverse;
            step <= 4'd0;
            block <= in_block ^ round_key(start_window, size);
            window <= start_window;
        end else if (done) begin
            if (out_ready) begin
                state <= IDLE;
                done <= 1'b0;
            end
        end else if (state == BUSY) begin
            step <= step + 4'd1;
            block <= next_block;
            window <= next_window;
            done <= step == rounds - 4'd1;
        end
    end
endmodule

`default_nettype wire
