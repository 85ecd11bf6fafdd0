// AES in Cipher Block Chaining mode on a stream of whole blocks (RFC 3602, SP 800-38A 6.2): 11, 13 or 15 cycles a block
// in both directions.
`default_nettype none

module aes_cbc (
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
    input  wire         cmd_decrypt,
    input  wire [127:0] s_tdata,
    input  wire         s_tlast,
    input  wire         s_tvalid,
    output wire         s_tready,
    output wire [127:0] m_tdata,
    output wire [15:0]  m_tkeep,
    output wire         m_tlast,
    output wire         m_tvalid,
    input  wire         m_tready
);
    reg active, decrypt;
    reg complete;         // the last block was taken in
    reg last;             // the block in work is the packet's last
    reg [127:0] chain;    // what the next block is combined with: the IV or the cipher text before it
    reg [127:0] received; // the cipher text in work, when deciphering

    wire [127:0] iv, text;
    byte_reverse iv_bytes (.in(cmd_iv), .out(iv));
    byte_reverse text_bytes (.in(s_tdata), .out(text));

    wire in_ready, out_valid;
    wire [127:0] out;
    wire leaves = m_tvalid & m_tready;
    // A block that is enciphered goes into the next one in the cycle in which it leaves.
    wire [127:0] previous = out_valid & ~decrypt ? out : chain;
    aes_core #(.INVERSE(1)) aes (
        .clk(clk), .rst(rst), .key_we(key_we), .key_addr(key_addr), .key_data(key_data), .key_clear(key_clear),
        .key_ready(key_ready), .flush(1'b0),
        .in_valid(s_tvalid & active & ~complete), .in_ready(in_ready), .in_inverse(decrypt),
        .in_block(decrypt ? text : text ^ previous),
        .out_valid(out_valid), .out_ready(m_tready), .out_block(out)
    );

    assign cmd_ready = key_ready & ~active;
    assign s_tready = in_ready & active & ~complete;
    always @(posedge clk) begin
        if (rst | key_clear) begin
            active <= 1'b0;
            decrypt <= 1'b0;
            complete <= 1'b0;
            last <= 1'b0;
            chain <= 128'd0;
            received <= 128'd0;
        end else if (cmd_valid & cmd_ready) begin
            active <= 1'b1;
            complete <= 1'b0;
            decrypt <= cmd_decrypt;
            chain <= iv;
        end else begin
            if (leaves) begin
                chain <= decrypt ? received : out;
                if (last) active <= 1'b0;
            end
            if (s_tvalid & s_tready) begin
                received <= text;
                last <= s_tlast;
                complete <= s_tlast;
            end
        end
    end

    byte_reverse out_bytes (.in(decrypt ? out ^ chain : out), .out(m_tdata));
    assign m_tkeep = 16'hffff;
    assign m_tlast = last;
    assign m_tvalid = out_valid & active;
endmodule

`default_nettype wire
