// AES in Counter mode on a stream (RFC 3686, SP 800-38A 6.5), one or 14 rounds at a time. Enciphering and deciphering
// are the same. The command's block is the first counter block; its low 32 bits count, most significant byte first.
`default_nettype none

module aes_ctr #(
    parameter PIPELINED = 0 // 0: aes_core, 1: aes_pipeline
) (
    input  wire         clk,
    input  wire         rst,
    input  wire         key_we,
    input  wire [3:0]   key_addr,
    input  wire [31:0]  key_data,
    input  wire         key_clear,
    output wire         key_ready,
    // One command a packet, before its first beat.
    input  wire         cmd_valid,
    output wire         cmd_ready,
    input  wire [127:0] cmd_iv,
    input  wire [127:0] s_tdata,
    input  wire [15:0]  s_tkeep,
    input  wire         s_tlast,
    input  wire         s_tvalid,
    output wire         s_tready,
    output wire [127:0] m_tdata,
    output wire [15:0]  m_tkeep,
    output wire         m_tlast,
    output wire         m_tvalid,
    input  wire         m_tready
);
    reg active; // a command was taken and its packet is not over
    reg [127:0] counter;
    wire taken = s_tvalid & s_tready;
    wire ends = taken & s_tlast;

    wire pad_valid, pad_request_ready;
    wire [127:0] pad, first_iv;
    byte_reverse iv_bytes (.in(cmd_iv), .out(first_iv));
    wire pad_request = active & ~ends;
    generate
        if (PIPELINED != 0) begin : pipelined
            aes_pipeline aes (
                .clk(clk), .rst(rst), .key_we(key_we), .key_addr(key_addr), .key_data(key_data),
                .key_clear(key_clear), .key_ready(key_ready), .flush(ends),
                .in_valid(pad_request), .in_ready(pad_request_ready), .in_block(counter),
                .out_valid(pad_valid), .out_ready(taken), .out_block(pad)
            );
        end else begin : iterative
            aes_core #(.INVERSE(0)) aes (
                .clk(clk), .rst(rst), .key_we(key_we), .key_addr(key_addr), .key_data(key_data),
                .key_clear(key_clear), .key_ready(key_ready), .flush(ends),
                .in_valid(pad_request), .in_ready(pad_request_ready), .in_inverse(1'b0), .in_block(counter),
                .out_valid(pad_valid), .out_ready(taken), .out_block(pad)
            );
        end
    endgenerate

    assign cmd_ready = key_ready & ~active;
    always @(posedge clk) begin
        if (rst | key_clear) begin
            active <= 1'b0;
            counter <= 128'd0;
        end else if (cmd_valid & cmd_ready) begin
            active <= 1'b1;
            counter <= first_iv;
        end else begin
            if (ends) active <= 1'b0;
            if (pad_request & pad_request_ready) counter[31:0] <= counter[31:0] + 32'd1;
        end
    end

    wire [127:0] pad_bytes, mask;
    byte_reverse pad_order (.in(pad), .out(pad_bytes));
    /* verilator lint_off PINCONNECTEMPTY */
    keep_mask kept (.keep(s_tkeep), .mask(mask), .count());
    /* verilator lint_on PINCONNECTEMPTY */
    assign m_tdata = (s_tdata ^ pad_bytes) & mask;
    assign m_tkeep = s_tkeep;
    assign m_tlast = s_tlast;
    assign m_tvalid = s_tvalid & pad_valid & active;
    assign s_tready = m_tready & pad_valid & active;
endmodule

`default_nettype wire
