// The block function of ChaCha20 (RFC 8439 2.3). QUARTERS is how many quarter rounds a cycle makes: 1, 4 (a
// round) or 8 (a double round); a block takes 80 / QUARTERS cycles and one in which it begins.
`default_nettype none

module chacha_core #(
    parameter QUARTERS = 4
) (
    input  wire         clk,
    input  wire         rst,
    input  wire         flush,      // forget the block in work
    input  wire         in_valid,
    output wire         in_ready,
    input  wire [383:0] in_state,   // key, counter and nonce: words 4 to 15, word 4 in the low bits
    output wire         out_valid,
    input  wire         out_ready,
    output wire [511:0] out_block   // the first byte in the low bits
);
    localparam STEPS = 80 / QUARTERS;
    localparam [6:0] LAST = STEPS[6:0] - 7'd1;
    reg busy, done;
    reg [6:0] step;
    reg [511:0] work;
    reg [383:0] start;
    wire [127:0] constants = {32'h6b206574, 32'h79622d32, 32'h3320646e, 32'h61707865};

    wire [511:0] next;
    genvar i;
    generate
        if (QUARTERS == 8) begin : double_round
            wire [511:0] between;
            chacha_round columns (.diagonal(1'b0), .in(work), .out(between));
            chacha_round diagonals (.diagonal(1'b1), .in(between), .out(next));
        end else if (QUARTERS == 4) begin : one_round
            chacha_round either (.diagonal(step[0]), .in(work), .out(next));
        end else begin : one_quarter
            // Every step works on column 0 of what it sees and turns the rows by one, so that the next column comes
            // there; the last of a round turns them on to the diagonals, or back.
            wire [127:0] quarter;
            chacha_quarter only (.in({work[31:0], work[159:128], work[287:256], work[415:384]}), .out(quarter));
            wire [127:0] row0 = {quarter[127:96], work[127:32]};
            wire [127:0] row1 = {quarter[95:64], work[255:160]};
            wire [127:0] row2 = {quarter[63:32], work[383:288]};
            wire [127:0] row3 = {quarter[31:0], work[511:416]};
            wire ends = step[1:0] == 2'd3;
            wire [127:0] on1 = {row1[31:0], row1[127:32]}, back1 = {row1[95:0], row1[127:96]};
            wire [127:0] turn2 = {row2[63:0], row2[127:64]};
            wire [127:0] on3 = {row3[95:0], row3[127:96]}, back3 = {row3[31:0], row3[127:32]};
            assign next = !ends ? {row3, row2, row1, row0}
                        : step[2] ? {back3, turn2, back1, row0}
                        : {on3, turn2, on1, row0};
        end
        for (i = 0; i < 16; i = i + 1) begin : sums
            if (i < 4) begin : constant
                assign out_block[32 * i +: 32] = work[32 * i +: 32] + constants[32 * i +: 32];
            end else begin : given
                assign out_block[32 * i +: 32] = work[32 * i +: 32] + start[32 * (i - 4) +: 32];
            end
        end
    endgenerate

    assign in_ready = ~busy & (~done | out_ready);
    assign out_valid = done & ~busy;
    always @(posedge clk) begin
        if (rst) begin
            busy <= 1'b0;
            done <= 1'b0;
            step <= 7'd0;
            work <= 512'd0;
            start <= 384'd0;
        end else if (flush) begin
            busy <= 1'b0;
            done <= 1'b0;
        end else if (in_valid & in_ready) begin
            busy <= 1'b1;
            done <= 1'b0;
            step <= 7'd0;
            work <= {in_state, constants};
            start <= in_state;
        end else if (busy) begin
            step <= step + 7'd1;
            work <= next;
            busy <= step != LAST;
            done <= step == LAST;
        end else if (out_ready) begin
            done <= 1'b0;
        end
    end
endmodule

`default_nettype wire
