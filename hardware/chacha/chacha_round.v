// Four quarter rounds of ChaCha (RFC 8439 2.3), combinational: on the columns, or on the diagonals.
`default_nettype none

module chacha_round (
    input  wire         diagonal,
    input  wire [511:0] in, // word 0 in the low bits
    output wire [511:0] out
);
    // The diagonals are the columns after row i was turned by i words; they are turned back behind the quarter rounds.
    wire [511:0] turned = {in[479:384], in[511:480], in[319:256], in[383:320], in[159:128], in[255:160], in[127:0]};
    wire [511:0] rows = diagonal ? turned : in;
    wire [511:0] done;
    genvar i;
    generate
        for (i = 0; i < 4; i = i + 1) begin : quarters
            chacha_quarter quarter (
                .in({rows[32*i +: 32], rows[32*(i+4) +: 32], rows[32*(i+8) +: 32], rows[32*(i+12) +: 32]}),
                .out({done[32*i +: 32], done[32*(i+4) +: 32], done[32*(i+8) +: 32], done[32*(i+12) +: 32]})
            );
        end
    endgenerate
    wire [511:0] back = {done[415:384], done[511:416], done[319:256], done[383:320], done[223:128], done[255:224], done[127:0]};
    assign out = diagonal ? back : done;
endmodule

`default_nettype wire
