// The cipher of an ESP engine: one of the cores behind ports that are the same for all. Text in beats of BYTES bytes.
`default_nettype none

module engine_cipher #(
    parameter CIPHER = 1, // 1: AES-CTR, 2: AES-CBC, 3: 3DES-CBC, 4: AES-GCM, 5: ChaCha20-Poly1305
    parameter BYTES = 16  // 8 for 3DES
) (
    input  wire               clk,
    input  wire               rst,
    input  wire               key_we,
    input  wire [3:0]         key_addr,
    input  wire [31:0]        key_data,
    input  wire               cmd_valid,
    output wire               cmd_ready,
    input  wire [127:0]       cmd_iv, // its first byte in the low bits
    input  wire               cmd_decrypt,
    input  wire [8*BYTES-1:0] s_tdata,
    input  wire [BYTES-1:0]   s_tkeep,
    input  wire               s_tuser,
    input  wire               s_tlast,
    input  wire               s_tvalid,
    output wire               s_tready,
    output wire [8*BYTES-1:0] m_tdata,
    output wire [BYTES-1:0]   m_tkeep,
    output wire               m_tuser, // the tag
    output wire               m_tvalid,
    input  wire               m_tready
);
    // Neither clears a key by itself: the engine resets what it holds.
    wire key_ready, last;
    generate
        if (CIPHER == 1) begin : ctr
            aes_ctr core (
                .clk(clk), .rst(rst), .key_we(key_we), .key_addr(key_addr), .key_data(key_data), .key_clear(1'b0),
                .key_ready(key_ready), .cmd_valid(cmd_valid), .cmd_ready(cmd_ready), .cmd_iv(cmd_iv),
                .s_tdata(s_tdata), .s_tkeep(s_tkeep), .s_tlast(s_tlast), .s_tvalid(s_tvalid), .s_tready(s_tready),
                .m_tdata(m_tdata), .m_tkeep(m_tkeep), .m_tlast(last), .m_tvalid(m_tvalid), .m_tready(m_tready)
            );
            assign m_tuser = 1'b0;
            wire unused = &{1'b0, cmd_decrypt, s_tuser};
        end else if (CIPHER == 2) begin : cbc
            aes_cbc core (
                .clk(clk), .rst(rst), .key_we(key_we), .key_addr(key_addr), .key_data(key_data), .key_clear(1'b0),
                .key_ready(key_ready), .cmd_valid(cmd_valid), .cmd_ready(cmd_ready), .cmd_iv(cmd_iv),
                .cmd_decrypt(cmd_decrypt), .s_tdata(s_tdata), .s_tlast(s_tlast), .s_tvalid(s_tvalid),
                .s_tready(s_tready), .m_tdata(m_tdata), .m_tkeep(m_tkeep), .m_tlast(last), .m_tvalid(m_tvalid),
                .m_tready(m_tready)
            );
            assign m_tuser = 1'b0;
            wire unused = &{1'b0, s_tkeep, s_tuser};
        end else if (CIPHER == 3) begin : triple_des
            triple_des_cbc core (
                .clk(clk), .rst(rst), .key_we(key_we & ~key_addr[3]), .key_addr(key_addr[2:0]), .key_data(key_data),
                .key_clear(1'b0), .cmd_valid(cmd_valid), .cmd_ready(cmd_ready), .cmd_iv(cmd_iv[63:0]),
                .cmd_decrypt(cmd_decrypt), .s_tdata(s_tdata), .s_tlast(s_tlast), .s_tvalid(s_tvalid),
                .s_tready(s_tready), .m_tdata(m_tdata), .m_tkeep(m_tkeep), .m_tlast(last), .m_tvalid(m_tvalid),
                .m_tready(m_tready)
            );
            assign m_tuser = 1'b0;
            assign key_ready = 1'b1;
            wire unused = &{1'b0, s_tkeep, s_tuser, cmd_iv[127:64]};
        end else if (CIPHER == 4) begin : gcm
            aes_gcm core (
                .clk(clk), .rst(rst), .key_we(key_we), .key_addr(key_addr), .key_data(key_data), .key_clear(1'b0),
                .key_ready(key_ready), .cmd_valid(cmd_valid), .cmd_ready(cmd_ready), .cmd_iv(cmd_iv[95:0]),
                .cmd_decrypt(cmd_decrypt), .s_tdata(s_tdata), .s_tkeep(s_tkeep), .s_tuser(s_tuser),
                .s_tlast(s_tlast), .s_tvalid(s_tvalid), .s_tready(s_tready), .m_tdata(m_tdata), .m_tkeep(m_tkeep),
                .m_tuser(m_tuser), .m_tlast(last), .m_tvalid(m_tvalid), .m_tready(m_tready)
            );
            wire unused = &{1'b0, cmd_iv[127:96]};
        end else begin : chacha
            chacha20_poly1305 core (
                .clk(clk), .rst(rst), .key_we(key_we & ~key_addr[3]), .key_addr(key_addr[2:0]), .key_data(key_data),
                .key_clear(1'b0), .cmd_valid(cmd_valid), .cmd_ready(cmd_ready), .cmd_iv(cmd_iv[95:0]),
                .cmd_decrypt(cmd_decrypt), .s_tdata(s_tdata), .s_tkeep(s_tkeep), .s_tuser(s_tuser),
                .s_tlast(s_tlast), .s_tvalid(s_tvalid), .s_tready(s_tready), .m_tdata(m_tdata), .m_tkeep(m_tkeep),
                .m_tuser(m_tuser), .m_tlast(last), .m_tvalid(m_tvalid), .m_tready(m_tready)
            );
            assign key_ready = 1'b1;
            wire unused = &{1'b0, cmd_iv[127:96]};
        end
    endgenerate
    wire unused_here = &{1'b0, key_ready, last};
endmodule

`default_nettype wire
