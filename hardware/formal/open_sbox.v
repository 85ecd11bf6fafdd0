// Stands in the place of the S-box where only is proved which bytes go through it: two maps that nothing else in a round is.
module aes_sbox #(parameter INVERSE = 1) (input inverse, input [7:0] in, output [7:0] out);
    assign out = inverse ? {in[4:0], in[7:5]} ^ 8'hff : {in[2:0], in[7:3]};
endmodule
