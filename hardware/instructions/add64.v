// add64: the four halves of both sources are added to the accumulator.
`default_nettype none

module add64 (
    input  wire [63:0] acc,
    input  wire [31:0] rs1,
    input  wire [31:0] rs2,
    output wire [63:0] acc_next
);
    wire [16:0] first = {1'b0, rs1[15:0]} + {1'b0, rs1[31:16]};
    wire [16:0] second = {1'b0, rs2[15:0]} + {1'b0, rs2[31:16]};
    wire [17:0] halves = {1'b0, first} + {1'b0, second};
    assign acc_next = acc + {46'd0, halves};
endmodule

`default_nettype wire
