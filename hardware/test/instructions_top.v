// All custom instructions side by side, for test/instructions.cc.
`default_nettype none

module instructions_top (
    input  wire [31:0]  rs1,
    input  wire [31:0]  rs2,
    input  wire [6:0]   selector,
    input  wire [1:0]   kind,      // of an AES round
    input  wire [3:0]   operation, // of aes32 (the low two bits) and of Zknh
    input  wire [63:0]  acc,
    input  wire [127:0] aes,
    input  wire [127:0] md5,
    input  wire [127:0] words,
    output wire [63:0]  add64_acc,
    output wire [31:0]  fold64_rd,
    output wire [63:0]  fold64_acc,
    output wire [127:0] aes_next,
    output wire [127:0] aes_by_columns,
    output wire [127:0] md5_next,
    output wire [31:0]  aes32_rd,
    output wire [31:0]  zknh_rd
);
    add64 add64_unit (.acc(acc), .rs1(rs1), .rs2(rs2), .acc_next(add64_acc));
    fold64 fold64_unit (.acc(acc), .rd(fold64_rd), .acc_next(fold64_acc));
    aes_round_instruction round (.kind(kind), .state(aes), .words(words), .next(aes_next));
    genvar i;
    generate
        for (i = 0; i < 4; i = i + 1) begin : columns
            aes_column one (
                .kind(kind), .column(i[1:0]), .state(aes), .key(words[32 * i +: 32]),
                .next(aes_by_columns[32 * i +: 32])
            );
        end
    endgenerate
    md5_iteration iteration (.selector(selector[5:0]), .rs1(rs1), .rs2(rs2), .state(md5), .next(md5_next));
    zkne_zknd aes32 (
        .decrypt(operation[1]), .middle(operation[0]), .bs(selector[1:0]), .rs1(rs1), .rs2(rs2), .rd(aes32_rd)
    );
    zknh sha (.operation(operation), .rs1(rs1), .rs2(rs2), .rd(zknh_rd));
    wire unused = &{1'b0, selector[6]};
endmodule

`default_nettype wire
