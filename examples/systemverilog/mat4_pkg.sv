// Forms of the generated modules' ports, for CONFIG=nano SET="formats=bf16 transpose=no". A structure's first field is
// its lowest bits in the manifest, and so its last field here.
package mat4_pkg;

  // Widths as manifest.json lists them under "command_fields".
  typedef struct packed {
    logic        count_special;
    logic        accumulate;
    logic [8:0]  offset;
    logic [2:0]  bank;
    logic [9:0]  count;
    logic        transpose;
    logic        paired;
    logic [2:0]  columns;
    logic [3:0]  contraction;
    logic [1:0]  first_row;
    logic [3:0]  format;
    logic [1:0]  opcode;
  } command_t;

  localparam logic [1:0] LOAD = 0, MULTIPLY = 1, READ = 2;
  localparam logic [3:0] BF16 = 2;

  // An operand inside the array: normalised, its exponent's top bits tell zero (000), infinity (110) and NaN (111).
  typedef struct packed {
    logic        sign;
    logic [8:0]  exponent;
    logic [6:0]  fraction;
  } operand_t;

  typedef struct packed {
    logic        swap;
    operand_t    operand;
  } moving_t;

  // A running sum inside the array: binary32 with the hidden bit apart.
  typedef struct packed {
    logic        nan;
    logic        infinity;
    logic        hidden;
    logic        sign;
    logic [7:0]  exponent;
    logic [22:0] fraction;
  } sum_t;

  function automatic operand_t to_operand(input logic [15:0] bf16);
    logic [8:0] exponent;
    logic [6:0] fraction;
    fraction = bf16[6:0];
    exponent = 9'd129 + {1'b0, bf16[14:7]};
    if (&bf16[14:7]) begin
      exponent = fraction == 0 ? 9'b110000000 : 9'b111000000;
      fraction = 0;
    end else if (bf16[14:7] == 0) begin
      if (fraction == 0) begin
        exponent = 0;
      end else begin
        // Subnormal: its leading one becomes the hidden bit.
        while (!fraction[6]) begin
          fraction = fraction << 1;
          exponent = exponent - 1;
        end
        fraction = fraction << 1;
      end
    end
    return '{sign: bf16[15], exponent: exponent, fraction: fraction};
  endfunction

  function automatic logic [31:0] to_binary32(input sum_t sum);
    if (sum.nan) return 32'h7fc00000;
    if (sum.infinity) return {sum.sign, 31'h7f800000};
    return {sum.sign, sum.hidden ? sum.exponent : 8'd0, sum.fraction};
  endfunction

endpackage
