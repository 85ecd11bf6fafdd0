// fold64: the accumulator as 16 bits, carries added in again (RFC 1071 2); the accumulator becomes zero.
`default_nettype none

module fold64 (
    input  wire [63:0] acc,
    output wire [31:0] rd,
    output wire [63:0] acc_next
);
    wire [17:0] once = {2'd0, acc[15:0]} + {2'd0, acc[31:16]} + {2'd0, acc[47:32]} + {2'd0, acc[63:48]};
    wire [16:0] twice = {1'b0, once[15:0]} + {15'd0, once[17:16]};
    wire [15:0] thrice = twice[15:0] + {15'd0, twice[16]};
    assign rd = {16'd0, thrice};
    assign acc_next = 64'd0;
endmodule

`default_nettype wire
