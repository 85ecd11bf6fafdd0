// One step of MD5 (RFC 1321 3.4), combinational: b + ((a + f(b, c, d) + word + constant) <<< s). The new
// state is d, next, b, c.
`default_nettype none

module md5_step (
    input  wire [5:0]  number, // of the step
    input  wire [31:0] a,
    input  wire [31:0] b,
    input  wire [31:0] c,
    input  wire [31:0] d,
    input  wire [31:0] word,
    input  wire [31:0] constant,
    output wire [31:0] next
);
    reg [31:0] f;
    reg [4:0] shift;
    always @* begin
        case (number[5:4])
            2'd0: f = (b & c) | (~b & d);
            2'd1: f = (d & b) | (~d & c);
            2'd2: f = b ^ c ^ d;
            default: f = c ^ (b | ~d);
        endcase
        case ({number[5:4], number[1:0]})
            4'd0: shift = 5'd7;
            4'd1: shift = 5'd12;
            4'd2: shift = 5'd17;
            4'd3: shift = 5'd22;
            4'd4: shift = 5'd5;
            4'd5: shift = 5'd9;
            4'd6: shift = 5'd14;
            4'd7: shift = 5'd20;
            4'd8: shift = 5'd4;
            4'd9: shift = 5'd11;
            4'd10: shift = 5'd16;
            4'd11: shift = 5'd23;
            4'd12: shift = 5'd6;
            4'd13: shift = 5'd10;
            4'd14: shift = 5'd15;
            default: shift = 5'd21;
        endcase
    end
    wire [31:0] sum = a + f + word + constant;
    wire [63:0] turned = {sum, sum} << shift;
    assign next = b + turned[63:32];

    // Neither the step within a group of four nor the low half of the rotation is needed.
    wire unused = &{1'b0, number[3:2], turned[31:0]};
endmodule

`default_nettype wire
