// A lookaside ESP engine: takes descriptors from a ring in memory, fetches packets, writes them back with their status,
// and interrupts once for several. The README has the ring entry and the registers.
//
// The next descriptor and packet are fetched while the one before is in work.
`default_nettype none

module lookaside #(
    parameter CIPHER = 1,    // see esp_engine
    parameter INTEGRITY = 2,
    parameter SLOT_BITS = 4
) (
    input  wire                 clk,
    input  wire                 rst,
    input  wire                 key_we,
    input  wire [SLOT_BITS+4:0] key_addr,
    input  wire [31:0]          key_data,
    input  wire                 key_clear,
    output wire                 key_ready,
    // Registers.
    input  wire                 reg_we,
    input  wire [2:0]           reg_addr,
    input  wire [31:0]          reg_wdata,
    output reg  [31:0]          reg_rdata, // of reg_addr, at once
    output wire                 irq,
    // Memory: reads are answered in their order, at any time; words of 32 bits at addresses of bytes.
    output wire                 read_valid,
    input  wire                 read_ready,
    output wire [31:0]          read_addr,
    input  wire                 answer_valid,
    input  wire [31:0]          answer_data,
    output wire                 write_valid,
    input  wire                 write_ready,
    output wire [31:0]          write_addr,
    output wire [31:0]          write_data
);
    localparam ENTRY_WORDS = 10; // of the sixteen of an entry, that are read

    // Registers: 0 base, 1 logarithm of the entries, 2 tail, 3 head, 4 threshold, 5 timeout, 6 acknowledge.
    reg [31:0] base, timeout, waited;
    reg [3:0] log;
    reg [15:0] tail, head, fetch, threshold, finished;
    wire [15:0] wrap = (16'd1 << log) - 16'd1;
    wire completes;
    always @*
        case (reg_addr)
            3'd0: reg_rdata = base;
            3'd1: reg_rdata = {28'd0, log};
            3'd2: reg_rdata = {16'd0, tail};
            3'd3: reg_rdata = {16'd0, head};
            3'd4: reg_rdata = {16'd0, threshold};
            3'd5: reg_rdata = timeout;
            default: reg_rdata = {16'd0, finished};
        endcase
    assign irq = finished != 16'd0 & (finished >= threshold | waited >= timeout);
    always @(posedge clk) begin
        if (rst) begin
            {base, timeout, waited} <= 96'd0;
            log <= 4'd0;
            {tail, head, threshold, finished} <= 64'd0;
        end else begin
            if (reg_we)
                case (reg_addr)
                    3'd0: base <= {reg_wdata[31:6], 6'd0};
                    3'd1: log <= reg_wdata[3:0];
                    3'd2: tail <= reg_wdata[15:0];
                    3'd4: threshold <= reg_wdata[15:0];
                    3'd5: timeout <= reg_wdata;
                    default: ;
                endcase
            if (completes) head <= head + 16'd1;
            if (reg_we & reg_addr == 3'd6) finished <= {15'd0, completes};
            else if (completes) finished <= finished + 16'd1;
            // Cycles since the first completion that is not acknowledged.
            waited <= finished == 16'd0 | (reg_we & reg_addr == 3'd6) ? 32'd0 : waited + {31'd0, ~irq};
        end
    end

    // Reads: first the entry, then the packet, never more than the queue has room for.
    reg in_packet;       // what is asked for
    reg [3:0] asked;     // words of the entry
    reg [13:0] to_ask;   // words of the packet
    reg entry_known;     // source and length came
    reg [31:0] source;
    reg [4:0] reserved;  // words in the queue and on their way to it
    reg answer_packet;   // what the answers are
    reg [3:0] answered;
    reg [13:0] to_answer;
    reg [31:0] destination;
    reg waits;           // a packet whose answer has not begun, with
    reg [31:0] next_destination;
    wire [31:0] fetch_entry = base + {10'd0, fetch & wrap, 6'd0};
    wire has_entry = fetch != tail & ~waits;
    wire asks_entry = ~in_packet & asked != ENTRY_WORDS[3:0] & (asked != 4'd0 | has_entry);
    wire room = reserved != 5'd16;
    assign read_valid = room & (asks_entry | (in_packet & to_ask != 14'd0));
    assign read_addr = in_packet ? source : fetch_entry + {26'd0, asked, 2'd0};
    wire asks = read_valid & read_ready;

    // Of the answers all but the two addresses go into the queue, the last one marked.
    wire is_address = ~answer_packet & answered < 4'd2;
    wire [13:0] packet_words = answer_data[15:2]; // when the length comes, word 3
    wire entry_ends = ~answer_packet & answered == ENTRY_WORDS[3:0] - 4'd1;
    wire queue_last = answer_packet ? to_answer == 14'd1 : entry_ends & to_answer == 14'd0;
    reg [32:0] queue [0:15];
    reg [3:0] queue_in, queue_out;
    reg [4:0] queued;
    wire engine_ready;
    wire leaves = queued != 5'd0 & engine_ready;
    wire enters = answer_valid & ~is_address;
    wire [32:0] front = queue[queue_out];

    always @(posedge clk) begin
        if (enters) queue[queue_in] <= {queue_last, answer_data};
        if (rst) begin
            {in_packet, entry_known, answer_packet, waits} <= 4'd0;
            {asked, answered, queue_in, queue_out} <= 16'd0;
            {to_ask, to_answer} <= 28'd0;
            {source, next_destination} <= 64'd0;
            {reserved, queued} <= 10'd0;
            fetch <= 16'd0;
        end else begin
            reserved <= reserved + {4'd0, asks} - {4'd0, leaves} - {4'd0, answer_valid & is_address};
            queued <= queued + {4'd0, enters} - {4'd0, leaves};
            if (enters) queue_in <= queue_in + 4'd1;
            if (leaves) queue_out <= queue_out + 4'd1;

            if (asks & ~in_packet) asked <= asked + 4'd1;
            if (asks & in_packet) begin
                source <= source + 32'd4;
                to_ask <= to_ask - 14'd1;
            end
            if (~in_packet & asked == ENTRY_WORDS[3:0] & entry_known) begin
                in_packet <= 1'b1;
                entry_known <= 1'b0;
                waits <= 1'b1;
            end
            // The next entry is asked for when the packet before its own has begun to come out.
            if (in_packet & to_ask == 14'd0) begin
                in_packet <= 1'b0;
                asked <= 4'd0;
                fetch <= fetch + 16'd1;
            end
            if (begins_out) waits <= 1'b0;

            if (answer_valid & ~answer_packet) begin
                answered <= entry_ends ? 4'd0 : answered + 4'd1;
                if (answered == 4'd0) source <= answer_data;
                if (answered == 4'd1) next_destination <= answer_data;
                if (answered == 4'd3) begin
                    to_ask <= packet_words;
                    to_answer <= packet_words;
                    entry_known <= 1'b1;
                end
                if (entry_ends) answer_packet <= to_answer != 14'd0;
            end
            if (answer_valid & answer_packet) begin
                to_answer <= to_answer - 14'd1;
                if (to_answer == 14'd1) answer_packet <= 1'b0;
            end
        end
    end

    wire [31:0] out;
    wire [3:0] out_keep;
    wire out_last, out_valid, out_ready;
    esp_engine #(.CIPHER(CIPHER), .INTEGRITY(INTEGRITY), .SLOT_BITS(SLOT_BITS)) engine (
        .clk(clk), .rst(rst), .key_we(key_we), .key_addr(key_addr), .key_data(key_data), .key_clear(key_clear),
        .key_ready(key_ready), .s_tdata(front[31:0]), .s_tlast(front[32]), .s_tvalid(queued != 5'd0),
        .s_tready(engine_ready), .m_tdata(out), .m_tkeep(out_keep), .m_tlast(out_last), .m_tvalid(out_valid),
        .m_tready(out_ready)
    );

    // Answers: the last two words, which are the status, go into the entry, all others to the destination.
    reg writing;         // the packet's answer has begun, and `destination` is its own
    reg [31:0] first, second;
    reg [1:0] held;      // of these two
    reg [1:0] closing;   // 2: the token is to be written, 1: the status
    wire begins_out = out_valid & ~writing & waits;
    wire [31:0] entry = base + {10'd0, head & wrap, 6'd0};
    assign out_ready = writing & closing == 2'd0 & (held != 2'd2 | write_ready);
    assign write_valid = closing != 2'd0 | (writing & held == 2'd2 & out_valid);
    assign write_addr = closing == 2'd2 ? entry + 32'd40 : closing == 2'd1 ? entry + 32'd44 : destination;
    assign write_data = closing == 2'd1 ? second : first;
    assign completes = closing == 2'd1 & write_ready;
    always @(posedge clk) begin
        if (rst) begin
            writing <= 1'b0;
            {first, second, destination} <= 96'd0;
            {held, closing} <= 4'd0;
        end else if (begins_out) begin
            writing <= 1'b1;
            destination <= next_destination;
        end else if (closing != 2'd0) begin
            if (write_ready) closing <= closing - 2'd1;
            if (completes) writing <= 1'b0;
        end else if (out_valid & out_ready) begin
            first <= second;
            second <= out;
            if (held == 2'd2) destination <= destination + 32'd4;
            else held <= held + 2'd1;
            if (out_last) begin
                closing <= 2'd2;
                held <= 2'd0;
            end
        end
    end
    wire unused = &{1'b0, out_keep};
endmodule

`default_nettype wire
