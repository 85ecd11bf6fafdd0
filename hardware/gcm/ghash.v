// GHASH (SP 800-38D 6.4): y becomes (y ^ block) H. With DIGIT of less than 128 that takes 128 / DIGIT cycles after the
// one in which the block comes, with 128 the product is made in that very cycle.
`default_nettype none

module ghash #(
    parameter DIGIT = 16 // bits of the block a cycle: a power of two
) (
    input  wire         clk,
    input  wire         rst,
    input  wire         clear,    // y becomes zero
    input  wire [127:0] h,        // the hash key; SP 800-38D's bit 0 is the most significant one
    input  wire         in_valid,
    output wire         in_ready,
    input  wire [127:0] in_block,
    output wire [127:0] y         // valid while in_ready
);
    reg [127:0] sum;
    wire [127:0] x = sum ^ in_block;
    assign y = sum;
    genvar i, j;
    generate
        if (DIGIT == 128) begin : at_once
            assign in_ready = 1'b1;

            // As polynomials with x^0 in the low bit, as gf2_multiply has them.
            wire [127:0] a, b, reduced;
            wire [254:0] product;
            for (i = 0; i < 128; i = i + 1) begin : order
                assign a[i] = x[127-i];
                assign b[i] = h[127-i];
            end
            gf2_multiply #(.WIDTH(128)) multiply (.a(a), .b(b), .product(product));
            // x^128 = x^7 + x^2 + x + 1; what that carries beyond again is six bits.
            wire [127:0] high = {1'b0, product[254:128]};
            wire [6:0] again = high[127:121] ^ {5'd0, high[127:126]} ^ {6'd0, high[127]};
            wire [127:0] top = {high[127:7], high[6:0] ^ again};
            assign reduced = product[127:0] ^ top ^ {top[126:0], 1'b0} ^ {top[125:0], 2'd0} ^ {top[120:0], 7'd0};
            integer k;
            always @(posedge clk)
                if (rst | clear) sum <= 128'd0;
                else if (in_valid)
                    for (k = 0; k < 128; k = k + 1) sum[k] <= reduced[127-k];
        end else begin : by_digits
            // Horner's rule, from the highest powers on: sum = sum x^DIGIT + digit H. The operand waits in `left`.
            localparam STEPS = 128 / DIGIT;
            reg [127:0] left;
            reg [7:0] steps;
            assign in_ready = steps == 8'd0;

            // Times x is a shift to the right; what falls out comes back as the byte e1 on the left.
            for (j = 0; j < DIGIT; j = j + 1) begin : powers
                wire [127:0] multiple; // H x^j
                if (j == 0) begin : first
                    assign multiple = h;
                end else begin : next
                    assign multiple = {1'b0, powers[j-1].multiple[127:1]}
                                    ^ {8'he1 & {8{powers[j-1].multiple[0]}}, 120'd0};
                end
            end
            for (j = 0; j <= DIGIT; j = j + 1) begin : sums
                wire [127:0] shifted; // sum x^j
                if (j == 0) begin : first
                    assign shifted = sum;
                end else begin : next
                    assign shifted = {1'b0, sums[j-1].shifted[127:1]}
                                   ^ {8'he1 & {8{sums[j-1].shifted[0]}}, 120'd0};
                end
            end
            wire [127:0] digit_product;
            for (i = 0; i < 128; i = i + 1) begin : bits
                // The digit is the low bits of `left`, its highest power in bit 0.
                wire [DIGIT-1:0] terms;
                for (j = 0; j < DIGIT; j = j + 1) begin : column
                    assign terms[j] = left[DIGIT-1-j] & powers[j].multiple[i];
                end
                assign digit_product[i] = ^terms;
            end

            always @(posedge clk) begin
                if (rst | clear) begin
                    sum <= 128'd0;
                    left <= 128'd0;
                    steps <= 8'd0;
                end else if (in_valid & in_ready) begin
                    sum <= 128'd0;
                    left <= x;
                    steps <= STEPS[7:0];
                end else if (!in_ready) begin
                    sum <= sums[DIGIT].shifted ^ digit_product;
                    left <= {{DIGIT{1'b0}}, left[127:DIGIT]};
                    steps <= steps - 8'd1;
                end
            end
        end
    endgenerate
endmodule

`default_nettype wire
