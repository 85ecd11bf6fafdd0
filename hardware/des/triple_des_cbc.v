// Triple DES in Cipher Block Chaining mode on a stream of whole blocks of 8 bytes (RFC 2451): 49 cycles a block in both
// directions.
`default_nettype none

module triple_des_cbc (
    input  wire        clk,
    input  wire        rst,
    input  wire        key_we,
    input  wire [2:0]  key_addr, // words 0 to 5 of the three keys
    input  wire [31:0] key_data,
    input  wire        key_clear,
    // One command a packet, before its first beat.
    input  wire        cmd_valid,
    output wire        cmd_ready,
    input  wire [63:0] cmd_iv,
    input  wire        cmd_decrypt,
    input  wire [63:0] s_tdata,
    input  wire        s_tlast,
    input  wire        s_tvalid,
    output wire        s_tready,
    output wire [63:0] m_tdata,
    output wire [7:0]  m_tkeep,
    output wire        m_tlast,
    output wire        m_tvalid,
    input  wire        m_tready
);
    reg [191:0] keys;
    integer k;
    always @(posedge clk)
        if (rst | key_clear) keys <= 192'd0;
        else if (key_we)
            for (k = 0; k < 6; k = k + 1)
                if (key_addr == k[2:0]) keys[160 - 32 * k +: 32] <= key_data;

    reg active, decrypt;
    reg complete;        // the last block was taken in
    reg last;            // the block in work is the packet's last
    reg [63:0] chain;    // what the next block is combined with: the IV or the cipher text before it
    reg [63:0] received; // the cipher text in work, when deciphering

    wire [63:0] iv, text;
    byte_reverse #(.BYTES(8)) iv_bytes (.in(cmd_iv), .out(iv));
    byte_reverse #(.BYTES(8)) text_bytes (.in(s_tdata), .out(text));

    wire in_ready, out_valid;
    wire [63:0] out;
    wire leaves = m_tvalid & m_tready;
    // A block that is enciphered goes into the next one in the cycle in which it leaves.
    wire [63:0] previous = out_valid & ~decrypt ? out : chain;
    triple_des_core des (
        .clk(clk), .rst(rst | key_clear), .keys(keys),
        .in_valid(s_tvalid & active & ~complete), .in_ready(in_ready), .in_decrypt(decrypt),
        .in_block(decrypt ? text : text ^ previous),
        .out_valid(out_valid), .out_ready(m_tready), .out_block(out)
    );

    assign cmd_ready = ~active;
    assign s_tready = in_ready & active & ~complete;
    always @(posedge clk) begin
        if (rst | key_clear) begin
            active <= 1'b0;
            decrypt <= 1'b0;
            complete <= 1'b0;
            last <= 1'b0;
            chain <= 64'd0;
            received <= 64'd0;
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

    byte_reverse #(.BYTES(8)) out_bytes (.in(decrypt ? out ^ chain : out), .out(m_tdata));
    assign m_tkeep = 8'hff;
    assign m_tlast = last;
    assign m_tvalid = out_valid & active;
endmodule

`default_nettype wire
