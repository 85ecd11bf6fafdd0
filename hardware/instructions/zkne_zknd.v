// aes32esi, aes32esmi, aes32dsi and aes32dsmi of RISC-V's Zkne and Zknd, for 32 bits: one S-box.
`default_nettype none

module zkne_zknd #(
    parameter INVERSE = 1 // 0: Zkne only
) (
    input  wire        decrypt, // aes32ds*
    input  wire        middle,  // *mi: with MixColumns
    input  wire [1:0]  bs,      // which byte
    input  wire [31:0] rs1,
    input  wire [31:0] rs2,
    output wire [31:0] rd
);
    wire invert = (INVERSE != 0) & decrypt;
    wire [7:0] in = rs2[{bs, 3'd0} +: 8];
    wire [7:0] s;
    aes_sbox #(.INVERSE(INVERSE)) sbox (.inverse(invert), .in(in), .out(s));

    // One byte of a column through MixColumns; row 0 is in the low byte.
    wire [31:0] column, mixed;
    aes_mix_column #(.INVERSE(INVERSE)) mix (.inverse(invert), .in({s, 24'd0}), .out(column));
    byte_reverse #(.BYTES(4)) order (.in(column), .out(mixed));
    wire [31:0] x = middle ? mixed : {24'd0, s};
    wire [63:0] turned = {x, x} << {bs, 3'd0};
    assign rd = rs1 ^ turned[63:32];
    wire unused = &{1'b0, turned[31:0]};
endmodule

`default_nettype wire
