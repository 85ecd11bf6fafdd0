// Poly1305 over blocks of 16 bytes (RFC 8439 2.5): sum = (sum + block + 2^128) r mod 2^130 - 5, DIGIT bits of
// the factor a cycle: 132 / DIGIT cycles a block and one in which it comes.
`default_nettype none

module poly1305 #(
    parameter DIGIT = 33 // divides 132, at most 66
) (
    input  wire         clk,
    input  wire         rst,
    input  wire         clear,    // the sum becomes zero
    input  wire [127:0] r,        // clamped here
    input  wire [127:0] s,
    input  wire         in_valid,
    output wire         in_ready,
    input  wire [127:0] in_block, // the first byte in the low bits
    output wire [127:0] tag       // valid while in_ready
);
    localparam STEPS = 132 / DIGIT;
    reg [130:0] sum;
    reg [131:0] left; // the factor, its next digit in the high bits
    reg [5:0] steps;
    assign in_ready = steps == 6'd0;

    // Horner's rule, and 2^130 = 5: below 2^131 again after each step.
    wire [127:0] clamped = r & 128'h0ffffffc0ffffffc0ffffffc0fffffff;
    wire [DIGIT+131:0] shifted = {1'b0, sum, {DIGIT{1'b0}}};
    wire [DIGIT+127:0] product = {{DIGIT{1'b0}}, clamped} * {128'd0, left[131 -: DIGIT]};
    wire [DIGIT+131:0] whole = shifted + {4'd0, product};
    wire [130:0] high = {{(129-DIGIT){1'b0}}, whole[DIGIT+131:130]};
    wire [130:0] folded = {1'b0, whole[129:0]} + high + {high[128:0], 2'd0};

    always @(posedge clk) begin
        if (rst | clear) begin
            sum <= 131'd0;
            left <= 132'd0;
            steps <= 6'd0;
        end else if (in_valid & in_ready) begin
            left <= {1'b0, sum} + {4'd1, in_block};
            sum <= 131'd0;
            steps <= STEPS[5:0];
        end else if (!in_ready) begin
            left <= {left[131-DIGIT:0], {DIGIT{1'b0}}};
            sum <= folded;
            steps <= steps - 6'd1;
        end
    end

    // Below 2^130 + 5, then below 2^130 - 5, of which 128 bits are needed.
    wire [130:0] once = {1'b0, sum[129:0]} + (sum[130] ? 131'd5 : 131'd0);
    wire [130:0] less = once + 131'd5;
    assign tag = (less[130] ? less[127:0] : once[127:0]) + s;
    wire unused = &{1'b0, high[130:129], less[129:128], once[130:128]};
endmodule

`default_nettype wire
