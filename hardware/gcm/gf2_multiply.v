// Product of two polynomials over GF(2), combinational, by Karatsuba's method down to 16 bits: three products of half
// the width instead of four.
`default_nettype none

module gf2_multiply #(
    parameter WIDTH = 128 // a power of two
) (
    input  wire [WIDTH-1:0]   a,
    input  wire [WIDTH-1:0]   b,
    output wire [2*WIDTH-2:0] product
);
    localparam HALF = WIDTH / 2;
    genvar i, j;
    generate
        if (WIDTH <= 16) begin : schoolbook
            // Bit i of the product is the sum of all a[j] b[i - j].
            for (i = 0; i <= 2 * WIDTH - 2; i = i + 1) begin : bits
                wire [WIDTH-1:0] terms;
                for (j = 0; j < WIDTH; j = j + 1) begin : sum
                    if (i >= j && i - j < WIDTH) begin : overlap
                        assign terms[j] = a[j] & b[i-j];
                    end else begin : apart
                        assign terms[j] = 1'b0;
                    end
                end
                assign product[i] = ^terms;
            end
        end else begin : halves
            wire [WIDTH-2:0] low, high, both, middle;
            gf2_multiply #(.WIDTH(HALF)) multiply_low (.a(a[HALF-1:0]), .b(b[HALF-1:0]), .product(low));
            gf2_multiply #(.WIDTH(HALF)) multiply_high (
                .a(a[WIDTH-1:HALF]), .b(b[WIDTH-1:HALF]), .product(high)
            );
            gf2_multiply #(.WIDTH(HALF)) multiply_both (
                .a(a[WIDTH-1:HALF] ^ a[HALF-1:0]), .b(b[WIDTH-1:HALF] ^ b[HALF-1:0]), .product(both)
            );
            assign middle = both ^ low ^ high;
            assign product = {{WIDTH{1'b0}}, low} ^ {high, {WIDTH{1'b0}}}
                           ^ {{HALF{1'b0}}, middle, {HALF{1'b0}}};
        end
    endgenerate
endmodule

`default_nettype wire
