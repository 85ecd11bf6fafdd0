// RISC-V's Zknh for 32 bits: the functions of SHA-256 and the halves of those of SHA-512.
`default_nettype none

module zknh (
    input  wire [3:0]  operation,
    input  wire [31:0] rs1,
    input  wire [31:0] rs2,
    output reg  [31:0] rd
);
    function [31:0] rotate(input [31:0] x, input [4:0] by);
        rotate = x >> by | x << (6'd32 - {1'b0, by});
    endfunction
    wire [31:0] sig0h = rs1 >> 1 ^ rs1 >> 7 ^ rs1 >> 8 ^ rs2 << 31 ^ rs2 << 24;
    wire [31:0] sig1h = rs1 << 3 ^ rs1 >> 6 ^ rs1 >> 19 ^ rs2 >> 29 ^ rs2 << 13;
    always @*
        case (operation)
            4'd0: rd = rotate(rs1, 5'd2) ^ rotate(rs1, 5'd13) ^ rotate(rs1, 5'd22);  // sha256sum0
            4'd1: rd = rotate(rs1, 5'd6) ^ rotate(rs1, 5'd11) ^ rotate(rs1, 5'd25);  // sha256sum1
            4'd2: rd = rotate(rs1, 5'd7) ^ rotate(rs1, 5'd18) ^ rs1 >> 3;            // sha256sig0
            4'd3: rd = rotate(rs1, 5'd17) ^ rotate(rs1, 5'd19) ^ rs1 >> 10;          // sha256sig1
            4'd4: rd = sig0h;                                                        // sha512sig0h
            4'd5: rd = sig0h ^ rs2 << 25;                                            // sha512sig0l
            4'd6: rd = sig1h;                                                        // sha512sig1h
            4'd7: rd = sig1h ^ rs2 << 26;                                            // sha512sig1l
            4'd8: rd = rs1 << 25 ^ rs1 << 30 ^ rs1 >> 28 ^ rs2 >> 7 ^ rs2 >> 2 ^ rs2 << 4;    // sha512sum0r
            default: rd = rs1 << 23 ^ rs1 >> 14 ^ rs1 >> 18 ^ rs2 >> 9 ^ rs2 << 18 ^ rs2 << 14; // sha512sum1r
        endcase
endmodule

`default_nettype wire
