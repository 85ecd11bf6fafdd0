// The key's registers: words 0 to 7, and a control word at address 8 whose low bits say the size
// (0: 128, 1: 192, 2: 256 bits) and whose writing makes the key the one in use.
`default_nettype none

module aes_key_store (
    input  wire         clk,
    input  wire         rst,
    input  wire         key_we,
    input  wire [3:0]   key_addr,
    input  wire [31:0]  key_data,
    input  wire         key_clear,
    output reg  [1:0]   size,
    output reg          changed, // a strobe: a key was completed
    output wire [255:0] window   // the key as the first window of aes_key_step
);
    reg [255:0] key;
    assign window = size == 2'd0 ? {128'd0, key[255:128]} : size == 2'd1 ? {64'd0, key[255:64]} : key;

    always @(posedge clk) begin
        changed <= 1'b0;
        if (rst | key_clear) begin
            key <= 256'd0;
            size <= 2'd0;
        end else if (key_we) begin
            if (key_addr[3]) begin
                size <= key_data[1:0];
                changed <= 1'b1;
            end else begin
                key[{~key_addr[2:0], 5'd0} +: 32] <= key_data;
            end
        end
    end
endmodule

`default_nettype wire
