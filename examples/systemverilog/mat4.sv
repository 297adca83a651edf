// y = transpose(a) * b for 4 x 4 matrices of bf16, on a generated tensor engine. A lone generated processing element works
// out y[0][0] once more, in the engine's own order, and `agrees` says whether the two have the same bits.
module mat4
  import mat4_pkg::*;
(
    input  logic                  clk,
    input  logic                  rst,
    input  logic                  start,   // a and b must stay as they are until `done`
    input  logic [3:0][3:0][15:0] a,       // a[k][m]
    input  logic [3:0][3:0][15:0] b,       // b[k][n]
    output logic [3:0][3:0][31:0] y,       // y[m][n], binary32
    output logic                  agrees,
    output logic                  done     // from the last result until the next start
);

  // How many words of each stream went through, and the cycle of the lone element's program.
  logic [2:0] commands, weights, columns, words;
  logic [3:0] cycle;
  logic       busy;
  localparam logic [2:0] COMMANDS = 3, WEIGHTS = 2, COLUMNS = 4, WORDS = 4;
  localparam logic [3:0] LAST_CYCLE = 11;

  command_t command;
  logic command_ready, stationary_ready, moving_ready, results_valid;
  logic [3:0][1:0][15:0] stationary;
  logic [3:0][15:0] moving;
  logic [3:0][31:0] results;
  // What this design has no use for: the buffer's ports for other engines, and the engine's reports.
  logic group_ready_unused, retired_unused;
  logic [63:0] group_data_unused;
  logic [2:0] special_unused;
  logic [223:0] counters_unused;
  logic [1:0] activity_unused;
  logic vector_read_ready_unused, vector_write_ready_unused;
  logic [127:0] vector_data_unused;

  always_comb begin
    command = '0;
    command.format = BF16;
    case (commands)
      0: begin
        command.opcode = LOAD;
        command.contraction = 4;
        command.columns = 4;
      end
      1: command.opcode = MULTIPLY;
      default: command.opcode = READ;
    endcase
    if (commands != 0) command.count = {7'd0, COLUMNS};
    for (int row = 0; row < 4; row++) begin
      // Two columns of a, or one of b: the slots of row 0 lowest.
      stationary[row] = weights == 0 ? a[row][1:0] : a[row][3:2];
      moving[row] = b[row][columns[1:0]];
    end
  end

  onc_tensor engine (
      .clk, .rst,
      .command__payload(command), .command__valid(busy && commands != COMMANDS), .command__ready(command_ready),
      .stationary__payload(stationary), .stationary__valid(busy && weights != WEIGHTS),
      .stationary__ready(stationary_ready),
      .moving__payload(moving), .moving__valid(busy && columns != COLUMNS), .moving__ready(moving_ready),
      .results__payload(results), .results__valid(results_valid), .results__ready(busy),
      .groups__0__valid(1'b0), .groups__0__access('0), .groups__0__ready(group_ready_unused),
      .groups__0__data(group_data_unused),
      .vector__read(1'b0), .vector__read_address('0), .vector__read_ready(vector_read_ready_unused),
      .vector__read_data(vector_data_unused), .vector__write(1'b0), .vector__write_address('0), .vector__write_data('0),
      .vector__mask('0), .vector__write_ready(vector_write_ready_unused),
      .retired(retired_unused), .special(special_unused), .activity(activity_unused),
      .counters(counters_unused), .counters_clear(1'b0)
  );

  // Row k of the lone element: its weight is taken in cycle 2k, its operand enters in 2k + 1 and meets the running sum in
  // 2k + 2, which is the cycle in which the sum of row k - 1 comes out.
  moving_t element_moving, moving_unused;
  sum_t element_in, element_out;
  logic [1:0] row;
  assign row = cycle[2:1];
  assign element_moving = '{swap: cycle[0] && cycle < 8, operand: to_operand(b[row][0])};
  assign element_in = cycle == 2 ? '0 : element_out;

  onc_pe element (
      .clk, .rst, .moving_i(element_moving), .moving_o(moving_unused), .sum_i(element_in), .sum_o(element_out),
      .weight_i(to_operand(a[row][0])), .load(!cycle[0] && cycle < 8)
  );

  logic [31:0] again;
  assign done = words == WORDS && cycle == LAST_CYCLE;
  assign agrees = again == y[0][0];

  always_ff @(posedge clk) begin
    if (rst) begin
      busy <= 0;
      words <= 0;
      cycle <= 0;
    end else if (start) begin
      busy <= 1;
      {commands, weights, columns, words, cycle} <= '0;
    end else if (busy) begin
      if (commands != COMMANDS && command_ready) commands <= commands + 1;
      if (weights != WEIGHTS && stationary_ready) weights <= weights + 1;
      if (columns != COLUMNS && moving_ready) columns <= columns + 1;
      if (cycle != LAST_CYCLE) cycle <= cycle + 1;
      if (cycle == 10) again <= to_binary32(element_out);
      if (results_valid) begin
        words <= words + 1;
        for (int m = 0; m < 4; m++) y[m][words[1:0]] <= results[m];
      end
      if (done) busy <= 0;
    end
  end

endmodule
