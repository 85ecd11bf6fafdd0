// The Internet checksum of a stream (RFC 1071): a beat a cycle, then one beat with the two bytes of the checksum.
`default_nettype none

module checksum #(
    parameter BYTES = 8 // of a beat, even
) (
    input  wire               clk,
    input  wire               rst,
    input  wire [8*BYTES-1:0] s_tdata,
    input  wire [BYTES-1:0]   s_tkeep,
    input  wire               s_tlast,
    input  wire               s_tvalid,
    output wire               s_tready,
    output wire [8*BYTES-1:0] m_tdata,
    output wire [BYTES-1:0]   m_tkeep,
    output wire               m_tlast,
    output wire               m_tvalid,
    input  wire               m_tready
);
    // The sum is the same in both orders of bytes, turned round (RFC 1071 2 (B)): lanes are added as they are.
    localparam HALVES = BYTES / 2;
    reg [15:0] sum;
    reg done;
    wire [8*BYTES-1:0] mask;
    /* verilator lint_off PINCONNECTEMPTY */
    keep_mask #(.BYTES(BYTES)) kept (.keep(s_tkeep), .mask(mask), .count());
    /* verilator lint_on PINCONNECTEMPTY */
    wire [8*BYTES-1:0] data = s_tdata & mask;

    reg [23:0] total;
    integer i;
    always @* begin
        total = {8'd0, sum};
        for (i = 0; i < HALVES; i = i + 1) total = total + {8'd0, data[16 * i +: 16]};
    end
    wire [16:0] folded = {1'b0, total[15:0]} + {9'd0, total[23:16]};
    wire [15:0] next = folded[15:0] + {15'd0, folded[16]};

    assign s_tready = ~done;
    assign m_tvalid = done;
    assign m_tlast = 1'b1;
    assign m_tdata = {{(8*BYTES-16){1'b0}}, ~sum};
    assign m_tkeep = {{(BYTES-2){1'b0}}, 2'b11};
    always @(posedge clk) begin
        if (rst) begin
            sum <= 16'd0;
            done <= 1'b0;
        end else if (done) begin
            if (m_tready) begin
                sum <= 16'd0;
                done <= 1'b0;
            end
        end else if (s_tvalid) begin
            sum <= next;
            done <= s_tlast;
        end
    end
endmodule

`default_nettype wire
