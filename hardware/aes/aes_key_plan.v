// What is special in step `step` of the key expansion, the one from round key `step` to the next
// (FIPS 197 5.2): see aes_key_step.
`default_nettype none

module aes_key_plan (
    input  wire [1:0] size, // 0: 128, 1: 192, 2: 256 bits
    input  wire [3:0] step,
    output wire       first_special,
    output wire       third_special,
    output wire       rotate,
    output reg  [7:0] rcon
);
    // Word m is special if m is a multiple of Nk, and of AES-256 also if it is 4 more than one.
    // Step r makes the words from Nk + 4r on. Of AES-192 that is the first, the third and none in turns.
    wire step_0_mod_3 = step == 4'd0 | step == 4'd3 | step == 4'd6 | step == 4'd9;
    wire step_1_mod_3 = step == 4'd1 | step == 4'd4 | step == 4'd7 | step == 4'd10;
    assign first_special = size != 2'd1 | step_0_mod_3;
    assign third_special = size == 2'd1 & step_1_mod_3;
    assign rotate = size != 2'd2 | ~step[0];

    // Which of the Rcon it is.
    reg [3:0] number;
    always @* begin
        case (size)
            2'd0: number = step;
            2'd1:
                case (step)
                    4'd0: number = 4'd0;
                    4'd1: number = 4'd1;
                    4'd3: number = 4'd2;
                    4'd4: number = 4'd3;
                    4'd6: number = 4'd4;
                    4'd7: number = 4'd5;
                    4'd9: number = 4'd6;
                    default: number = 4'd7;
                endcase
            default: number = {1'b0, step[3:1]};
        endcase
        case (number)
            4'd8: rcon = 8'h1b;
            4'd9: rcon = 8'h36;
            default: rcon = 8'd1 << number[2:0];
        endcase
    end
endmodule

`default_nettype wire
