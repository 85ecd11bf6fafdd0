// Stand in the places of rounds where handshakes are proved, which do not depend on what a round computes.
module aes_round #(parameter INVERSE = 1) (
    input inverse, input last, input [127:0] in, input [127:0] key, output [127:0] out
);
    assign out = in ^ key;
endmodule

module aes_key_step #(parameter BACKWARD = 1) (
    input backward, input [1:0] size, input first_special, input third_special, input rotate, input [7:0] rcon,
    input [255:0] window, output [255:0] next
);
    assign next = {window[254:0], window[255]};
endmodule

module des_function (input [31:0] r, input [47:0] key, output [31:0] out);
    assign out = r ^ key[31:0];
endmodule

module chacha_round (input diagonal, input [511:0] in, output [511:0] out);
    assign out = {in[510:0], in[511]};
endmodule

module gf2_multiply #(parameter WIDTH = 128) (
    input [WIDTH-1:0] a, input [WIDTH-1:0] b, output [2*WIDTH-2:0] product
);
    assign product = {a, b[WIDTH-2:0]};
endmodule

module poly1305 #(parameter DIGIT = 33) (
    input clk, input rst, input clear, input [127:0] r, input [127:0] s, input in_valid, output in_ready,
    input [127:0] in_block, output [127:0] tag
);
    reg [127:0] sum;
    reg [5:0] steps;
    assign in_ready = steps == 0;
    assign tag = sum;
    always @(posedge clk)
        if (rst | clear) begin
            sum <= 0;
            steps <= 0;
        end else if (in_valid & in_ready) begin
            sum <= sum ^ in_block;
            steps <= 132 / DIGIT;
        end else if (!in_ready) begin
            sum <= sum ^ r ^ s;
            steps <= steps - 1;
        end
endmodule
