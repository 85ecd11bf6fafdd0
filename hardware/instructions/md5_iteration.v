// md5_iteration: a step of MD5; rs1 is the word of the message, rs2 the constant, the selector the step's number.
`default_nettype none

module md5_iteration (
    input  wire [5:0]   selector,
    input  wire [31:0]  rs1,
    input  wire [31:0]  rs2,
    input  wire [127:0] state, // m[0] (a) in the low bits
    output wire [127:0] next
);
    wire [31:0] a = state[31:0], b = state[63:32], c = state[95:64], d = state[127:96];
    wire [31:0] fresh;
    md5_step step (
        .number(selector), .a(a), .b(b), .c(c), .d(d), .word(rs1), .constant(rs2), .next(fresh)
    );
    assign next = {c, b, fresh, d};
endmodule

`default_nettype wire
