// A queue of words with their tlast, 2 to the power LOG of them. What is in it is there to be taken in the cycle behind
// the one in which it came.
`default_nettype none

module word_fifo #(
    parameter BITS = 32,
    parameter LOG = 4
) (
    input  wire            clk,
    input  wire            rst,
    input  wire [BITS-1:0] s_tdata,
    input  wire            s_tlast,
    input  wire            s_tvalid,
    output wire            s_tready,
    output wire [BITS-1:0] m_tdata,
    output wire            m_tlast,
    output wire            m_tvalid,
    input  wire            m_tready
);
    reg [BITS:0] words [0:(1<<LOG)-1];
    reg [LOG:0] in, out; // one bit more than a place has tells full from empty
    assign s_tready = in != {~out[LOG], out[LOG-1:0]};
    assign m_tvalid = in != out;
    assign {m_tlast, m_tdata} = words[out[LOG-1:0]];
    always @(posedge clk) begin
        if (s_tvalid & s_tready) words[in[LOG-1:0]] <= {s_tlast, s_tdata};
        if (rst) begin
            in <= {(LOG+1){1'b0}};
            out <= {(LOG+1){1'b0}};
        end else begin
            if (s_tvalid & s_tready) in <= in + 1'b1;
            if (m_tvalid & m_tready) out <= out + 1'b1;
        end
    end
endmodule

`default_nettype wire
