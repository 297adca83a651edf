// The loops around a verilated design that must run at its speed; sim/harness.py drives them through ctypes.
// onc_ports.h, written for each design, defines ONC_PORTS: one ONC_PORT(name) for each port, in the design's order, and
// ONC_CLOCK(top), an lvalue of the clock where the design has one.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "Vtop.h"
#include "verilated.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
#endif
#include "axi.hpp"
#include "onc_ports.h"

namespace {

struct Port {
    uint8_t* place;
    uint64_t bytes;  // Verilator's own storage, at least as large as a row
};

constexpr uint64_t PERIOD = 1000;  // of the clock in a trace, in picoseconds: a nanosecond is a cycle

struct Watch {  // a port, and every value that it took, with the cycle of each
    const uint8_t* port;
    uint64_t bytes;
    std::vector<uint64_t> cycles;
    std::vector<uint8_t> values;

    void sample(uint64_t cycle) {
        if (!values.empty() && !std::memcmp(port, &values[values.size() - bytes], bytes)) return;
        cycles.push_back(cycle);
        values.insert(values.end(), port, port + bytes);
    }
};

struct Model {
    VerilatedContext context;
    std::unique_ptr<Vtop> top;
    uint64_t cycle = 0;  // rising edges so far
    std::unique_ptr<axi::Memory> memory;
    std::unique_ptr<Watch> watch;
#if VM_TRACE_FST
    std::unique_ptr<VerilatedFstC> trace;
#endif

    Model() {
        context.traceEverOn(VM_TRACE);
        top = std::make_unique<Vtop>(&context, "");
    }

    void dump(uint64_t time) {
#if VM_TRACE_FST
        if (trace) trace->dump(time);
#endif
    }

    void settle() { top->eval(); }

    // One rising edge; the inputs are applied and the design has settled. Leaves the clock low but not settled.
    void rise() {
        dump(cycle * PERIOD);
#ifdef ONC_CLOCK
        ONC_CLOCK(top) = 1;
        top->eval();
        dump(cycle * PERIOD + PERIOD / 2);
        ONC_CLOCK(top) = 0;
#endif
        ++cycle;
    }

    // The same with the memory, where there is one. False: the design broke a rule of the bus, and the clock did not rise.
    bool edge() {
        if (watch) watch->sample(cycle);
        if (!memory) {
            rise();
            return true;
        }
        if (!memory->sample(cycle)) return false;
        rise();
        memory->drive(cycle);
        return true;
    }
};

// Verilator looks things up in the thread's context, which it leaves at that of the model made last, even when that one
// is deleted. So each call works in its own model's, and leaves the default behind.
struct InContext {
    explicit InContext(Model* model) { Verilated::threadContextp(&model->context); }
    ~InContext() { Verilated::threadContextp(Verilated::defaultContextp()); }
};

inline void copy(uint8_t* to, const uint8_t* from, uint64_t bytes) {
    switch (bytes) {  // known sizes become single moves
    case 1: *to = *from; break;
    case 2: std::memcpy(to, from, 2); break;
    case 4: std::memcpy(to, from, 4); break;
    case 8: std::memcpy(to, from, 8); break;
    default: std::memcpy(to, from, bytes);
    }
}

inline uint64_t splitmix(uint64_t& state) {  // random numbers: SplitMix64
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

struct Column {  // one port's rows in onc_vectors
    uint8_t* port;
    uint8_t* rows;
    uint64_t bytes;
};

struct Stream {  // one side of a stream in onc_streams; mirrored in sim/harness.py
    uint8_t* payload;
    uint8_t* valid;
    uint8_t* ready;
    uint8_t* rows;
    uint8_t* held;       // payload that must not change before ready
    uint64_t bytes;      // of a row
    uint64_t top_mask;   // bits in use of a row's last byte
    uint64_t count;      // rows to send or to collect
    uint64_t done;
    uint64_t stall;      // of 2^32, how often valid or ready is withheld
    uint64_t random;
    uint64_t first, last;  // cycles of the first and the last transfer
    uint64_t waiting;    // valid is high and not yet accepted

    bool stalls() { return stall && (splitmix(random) >> 32) < stall; }

    void transfer(uint64_t cycle) {
        if (!done) first = cycle;
        last = cycle;
        ++done;
        waiting = 0;
    }
};

enum Outcome : uint64_t { FINISHED, OUT_OF_CYCLES, VALID_DROPPED, PAYLOAD_CHANGED, BUS_RULE_BROKEN };

// A payload that is not valid means nothing: noise in its place shows a design that reads it all the same.
void scramble(Stream& s) {
    if (!s.bytes) return;
    for (uint64_t i = 0; i < s.bytes; ++i) s.payload[i] = static_cast<uint8_t>(splitmix(s.random));
    s.payload[s.bytes - 1] &= s.top_mask;
}

void drive(Stream& s) {
    if (s.waiting) return;
    if (s.done < s.count && !s.stalls()) {
        copy(s.payload, s.rows + s.done * s.bytes, s.bytes);
        *s.valid = s.waiting = 1;
    } else if (*s.valid) {
        *s.valid = 0;
        scramble(s);
    }
}

// Take what the design sends in a settled cycle, and check that it keeps the rules of a stream.
Outcome collect(Stream& s, uint64_t cycle) {
    if (s.waiting) {
        if (!*s.valid) return VALID_DROPPED;
        if (std::memcmp(s.held, s.payload, s.bytes)) return PAYLOAD_CHANGED;
    }
    if (*s.valid) {
        if (*s.ready) {
            copy(s.rows + s.done * s.bytes, s.payload, s.bytes);
            s.transfer(cycle);
        } else if (!s.waiting) {
            copy(s.held, s.payload, s.bytes);
            s.waiting = 1;
        }
    }
    return FINISHED;
}

bool complete(const Stream* streams, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i)
        if (streams[i].done < streams[i].count) return false;
    return true;
}

}  // namespace

extern "C" {

Model* onc_new() {
    Model* model = new Model;
    InContext context{model};
    return model;
}

void onc_delete(Model* model) {
    InContext context{model};
    model->settle();  // blocks of a design that never ran are not there to be finished
    model->top->final();
    delete model;
}

void onc_ports(Model* model, Port* ports) {
#define ONC_PORT(name) *ports++ = {reinterpret_cast<uint8_t*>(&model->top->name), sizeof(model->top->name)};
    ONC_PORTS
#undef ONC_PORT
}

void onc_settle(Model* model) {
    InContext context{model};
    model->settle();
}

uint64_t onc_cycle(Model* model) { return model->cycle; }

uint64_t onc_step(Model* model, uint64_t cycles) {
    InContext context{model};
    for (uint64_t i = 0; i < cycles; ++i) {
        model->settle();
        if (!model->edge()) return BUS_RULE_BROKEN;
    }
    model->settle();
    return FINISHED;
}

// Runs until a port is not zero before a rising edge, or the cycles are used up.
uint64_t onc_run_until(Model* model, const uint8_t* port, uint64_t bytes, uint64_t cycles) {
    InContext context{model};
    for (uint64_t i = 0; i <= cycles; ++i) {
        model->settle();
        if (std::any_of(port, port + bytes, [](uint8_t byte) { return byte != 0; })) return FINISHED;
        if (i == cycles) break;
        if (!model->edge()) return BUS_RULE_BROKEN;
    }
    return OUT_OF_CYCLES;
}

uint64_t onc_vectors(Model* model, const Column* inputs, uint64_t input_count, const Column* outputs, uint64_t output_count,
                 uint64_t from, uint64_t to) {
    InContext context{model};
    for (uint64_t row = from; row < to; ++row) {
        for (uint64_t i = 0; i < input_count; ++i)
            copy(inputs[i].port, inputs[i].rows + row * inputs[i].bytes, inputs[i].bytes);
        model->settle();
        for (uint64_t i = 0; i < output_count; ++i)
            copy(outputs[i].rows + row * outputs[i].bytes, outputs[i].port, outputs[i].bytes);
        if (!model->edge()) return BUS_RULE_BROKEN;
    }
    model->settle();
    return FINISHED;
}

// Runs until every stream is complete or the cycles are used up; broken receives the stream that broke a rule.
uint64_t onc_streams(Model* model, Stream* inputs, uint64_t input_count, Stream* outputs, uint64_t output_count,
                     uint64_t cycles, uint64_t* broken) {
    InContext context{model};
    uint64_t outcome = OUT_OF_CYCLES;
    for (uint64_t used = 0;; ++used) {
        if (complete(inputs, input_count) && complete(outputs, output_count)) {
            for (uint64_t i = 0; i < input_count; ++i) *inputs[i].valid = 0;
            outcome = FINISHED;
            break;
        }
        if (used == cycles) break;
        for (uint64_t i = 0; i < input_count; ++i) drive(inputs[i]);
        for (uint64_t i = 0; i < output_count; ++i)
            *outputs[i].ready = outputs[i].done < outputs[i].count && !outputs[i].stalls();
        model->settle();
        for (uint64_t i = 0; i < input_count; ++i)
            if (*inputs[i].valid && *inputs[i].ready) inputs[i].transfer(model->cycle);
        for (uint64_t i = 0; i < output_count; ++i)
            if (Outcome rule = collect(outputs[i], model->cycle)) {
                *broken = i;
                return rule;
            }
        if (!model->edge()) return BUS_RULE_BROKEN;
    }
    for (uint64_t i = 0; i < output_count; ++i) *outputs[i].ready = 0;
    model->settle();
    return outcome;
}

void onc_watch(Model* model, const uint8_t* port, uint64_t bytes) {
    model->watch = std::make_unique<Watch>(Watch{port, bytes, {}, {}});
}

uint64_t onc_watch_count(Model* model) { return model->watch->cycles.size(); }

// Hands out what was seen, and ends the watch.
void onc_watch_end(Model* model, uint64_t* cycles, uint8_t* values) {
    std::copy(model->watch->cycles.begin(), model->watch->cycles.end(), cycles);
    std::copy(model->watch->values.begin(), model->watch->values.end(), values);
    model->watch.reset();
}

void onc_memory(Model* model, const axi::Settings* settings) { model->memory = std::make_unique<axi::Memory>(*settings); }

void onc_memory_manager(Model* model, const axi::Field* fields, const char* name) {
    model->memory->managers.emplace_back(*model->memory, fields, name);
}

void onc_memory_faulty(Model* model, const axi::Range* ranges, uint64_t count) {
    model->memory->faulty.assign(ranges, ranges + count);
}

void onc_memory_statistics(Model* model, uint64_t manager, axi::Statistics* statistics) {
    *statistics = model->memory->managers[manager].counted;
}

const char* onc_memory_error(Model* model) { return model->memory->error.c_str(); }

void onc_memory_reset(Model* model) { model->memory->reset(); }

#if VM_TRACE_FST
void onc_trace_open(Model* model, const char* path) {
    InContext context{model};
    model->trace = std::make_unique<VerilatedFstC>();
    model->top->trace(model->trace.get(), 99);
    model->trace->open(path);
}

void onc_trace_close(Model* model) {
    InContext context{model};
    model->settle();
    model->dump(model->cycle * PERIOD);
    model->trace->close();
    model->trace.reset();
}
#endif
}
