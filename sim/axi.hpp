// A memory that serves the AXI4 managers of a design and checks that they keep the protocol (Arm IHI 0022) and the rules of
// the house. It acts like a register: what it drives in a cycle depends on earlier cycles only. harness.cpp runs it,
// sim/memory.py makes it; Settings, Range, Field and Statistics are mirrored in sim/harness.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace axi {

inline uint64_t splitmix(uint64_t& state) {  // random numbers: SplitMix64
    uint64_t z = (state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

constexpr uint64_t MOST_OUTSTANDING = 64;  // bursts of a manager, reads and writes apart
constexpr uint64_t MOST_LATE = 1000;       // cycles that data may be ahead of its address
constexpr uint64_t MOST_BEATS = 256;
constexpr uint64_t MOST_BYTES = 64;        // of a beat
constexpr uint64_t PAGE = 4096;            // no burst crosses a multiple of it

enum BurstType : uint64_t { FIXED, INCREMENTING, WRAPPING, RESERVED };
enum Response : uint64_t { OKAY = 0, SLAVE_ERROR = 2, DECODE_ERROR = 3 };

struct Field {  // a port: its place, and the bytes that it is kept in; no place where the manager does not have it
    uint8_t* place;
    uint64_t bytes;

    explicit operator bool() const { return place; }
    inline uint64_t get() const;
    void set(uint64_t value) const { std::memcpy(place, &value, bytes); }
};

struct AddressPorts {
    Field valid, ready, id, address, length, size, type;
};

struct Ports {  // of one manager, in the order of sim/memory.py
    AddressPorts ar;
    struct {
        Field valid, ready, id, data, response, last;
    } r;
    AddressPorts aw;
    struct {
        Field valid, ready, data, strobes, last;
    } w;
    struct {
        Field valid, ready, id, response;
    } b;
};

struct Settings {
    uint8_t* bytes;
    const uint8_t* rst;  // null where the design has none
    uint64_t size;
    uint64_t low, high;  // cycles from an address, or the last data of a write, to the earliest answer
    uint64_t stall;      // of 2^32, how often a ready or a new valid is withheld
    uint64_t reorder;    // whether bursts of different identifiers are answered in any order
    uint64_t random;
};

struct Statistics {
    uint64_t read_bursts, write_bursts, read_beats, write_beats, bytes_read, bytes_written, most_reads, most_writes;
};

struct Range {
    uint64_t first, end;
};

uint64_t Field::get() const {
    uint64_t value = 0;
    switch (bytes) {  // known sizes become single moves
    case 1: return *place;
    case 2: std::memcpy(&value, place, 2); break;
    case 4: std::memcpy(&value, place, 4); break;
    default: std::memcpy(&value, place, 8);
    }
    return value;
}

inline uint64_t lanes_below(uint64_t lane) { return lane < 64 ? (uint64_t{1} << lane) - 1 : ~uint64_t{0}; }

struct Burst {
    uint64_t id, address, length, size, type;  // as the channel has them: length is one less than the beats
    uint64_t due;                              // cycle of the earliest answer
    uint64_t response;                         // of a write

    uint64_t beat_bytes() const { return uint64_t{1} << size; }

    // Of the bytes that a beat is about; the first beat need not begin there.
    uint64_t place(uint64_t beat) const { return (address & -beat_bytes()) + (beat << size); }

    // How many bytes below its own address the first beat's place is.
    uint64_t skipped(uint64_t beat) const { return beat ? 0 : address - place(0); }

    bool same_offer(const Burst& other) const {
        return id == other.id && address == other.address && length == other.length && size == other.size &&
               type == other.type;
    }

    std::string text() const {
        char hex[32];
        std::snprintf(hex, sizeof hex, "%#llx", static_cast<unsigned long long>(address));
        return "id " + std::to_string(id) + ", address " + hex + ", beats " + std::to_string(length + 1) + " of " +
               std::to_string(beat_bytes()) + " bytes, burst type " + std::to_string(type);
    }
};

struct Beat {
    uint8_t data[MOST_BYTES];
    uint64_t strobes, last, cycle;
};

class Manager;

class Memory {
public:
    std::deque<Manager> managers;
    std::vector<Range> faulty;
    std::string error;  // the rule that was broken last, in words

    explicit Memory(const Settings& settings) : settings(settings) {}
    Memory(const Memory&) = delete;

    void reset();
    void drive(uint64_t cycle);
    bool sample(uint64_t cycle);

    const Settings settings;

    bool holds(uint64_t address, uint64_t count) const {
        return address < settings.size && count <= settings.size - address;
    }

    // Which bytes of the word at `base` are faulty.
    uint64_t faulty_lanes(uint64_t base, uint64_t count) const {
        uint64_t lanes = 0;
        for (const Range& range : faulty)
            if (range.first < base + count && range.end > base)
                lanes |= lanes_below(std::min(range.end - base, count)) &
                         ~lanes_below(range.first > base ? range.first - base : 0);
        return lanes;
    }

private:
    bool in_reset = false;  // rst was high in the cycle before: the design is in its initial state
};

class Manager {
public:
    Statistics counted{};  // since the memory was made

    Manager(Memory& memory, const Field* fields, const char* name) : memory(memory), name(name), written(MOST_BEATS) {
        static_assert(sizeof(Ports) % sizeof(Field) == 0);
        std::memcpy(&p, fields, sizeof p);
        data_bytes = p.r.data.bytes;
        random = memory.settings.random;
        for (const char* letter = name; *letter; ++letter) random = splitmix(random) ^ static_cast<uint8_t>(*letter);
        reset();
    }

    void reset() {
        reads.clear();
        addressed.clear();
        answers.clear();
        ahead.clear();
        filled = 0;
        reading = read_waits = answer_waits = write_waits = false;
        ar_offer.waits = aw_offer.waits = false;
        *p.ar.ready.place = *p.r.valid.place = 0;
        forget_read();
        if (!p.aw.valid) return;
        *p.aw.ready.place = *p.w.ready.place = *p.b.valid.place = 0;
        forget_answer();
    }

    void drive(uint64_t cycle) {
        *p.ar.ready.place = !stalls();
        drive_read(cycle);
        if (!p.aw.valid) return;
        *p.aw.ready.place = !stalls();
        *p.w.ready.place = !stalls();
        drive_answer(cycle);
    }

    bool sample(uint64_t cycle) {
        if (*p.r.valid.place && *p.r.ready.place) end_read_beat();
        if (!offered("ar", p.ar, ar_offer, cycle)) return false;
        if (*p.ar.valid.place && *p.ar.ready.place && !begin_read(cycle)) return false;
        if (!p.aw.valid) return true;
        if (*p.b.valid.place && *p.b.ready.place) answer_waits = false;
        if (!offered("aw", p.aw, aw_offer, cycle)) return false;
        if (*p.aw.valid.place && *p.aw.ready.place && !begin_write(cycle)) return false;
        return write_data_offered(cycle) && take_write_data(cycle);
    }

    // Whether the manager offers nothing, as it must in reset.
    bool silent(uint64_t cycle) {
        const char* channel = p.ar.valid.get() ? "ar" : nullptr;
        if (p.aw.valid && p.aw.valid.get()) channel = "aw";
        if (p.w.valid && p.w.valid.get()) channel = "w";
        return !channel || broken(cycle, channel, "valid is high while rst is high", "");
    }

private:
    struct Offer {  // what is on an address channel
        bool waits;
        Burst burst;
    };

    Memory& memory;
    std::string name;  // for messages
    Ports p;
    uint64_t data_bytes;
    uint64_t random;

    Offer ar_offer, aw_offer;
    std::vector<Burst> reads;     // accepted, the oldest first
    bool reading, read_waits;     // the beats of read_burst are on their way; one of them is valid and not yet accepted
    Burst read_burst;
    uint64_t read_beat;

    bool write_waits;             // write_beat is offered and was not accepted
    Beat write_beat;
    std::deque<Burst> addressed;  // writes whose data is not complete, the oldest first
    std::deque<Beat> ahead;       // data that has no address yet
    std::vector<Beat> written;    // the first `filled` beats of addressed.front()
    uint64_t filled;
    std::vector<Burst> answers;   // writes to be answered, the oldest first
    bool answer_waits;

    bool stalls() { return memory.settings.stall && (splitmix(random) >> 32) < memory.settings.stall; }

    uint64_t latency() {
        const Settings& settings = memory.settings;
        return settings.low + (settings.high > settings.low ? splitmix(random) % (settings.high - settings.low + 1) : 0);
    }

    bool broken(uint64_t cycle, const char* channel, const char* rule, const std::string& what) {
        memory.error = std::string("Manager ") + name + " broke AXI4 in cycle " + std::to_string(cycle) + " on channel " +
                        channel + ": " + rule + (what.empty() ? "" : " (" + what + ")");
        return false;
    }

    // A payload that is not valid means nothing: noise in its place shows a design that reads it all the same.
    void noise(uint8_t* place, uint64_t bytes) {
        for (uint64_t i = 0; i < bytes; i += 8) {
            const uint64_t word = splitmix(random);
            std::memcpy(place + i, &word, std::min<uint64_t>(bytes - i, 8));
        }
    }

    void forget_read() {
        noise(p.r.data.place, data_bytes);
        p.r.response.set(splitmix(random) & 3);
        p.r.last.set(splitmix(random) & 1);
    }

    void forget_answer() { p.b.response.set(splitmix(random) & 3); }

    // Takes out the next burst to be answered, if one is due: the oldest, or any that none of its identifier is ahead of.
    bool take_due(std::vector<Burst>& bursts, uint64_t cycle, Burst& taken) {
        const size_t count = memory.settings.reorder ? bursts.size() : std::min<size_t>(bursts.size(), 1);
        size_t found = count, choices = 0;
        for (size_t i = 0; i < count; ++i) {
            if (bursts[i].due > cycle) continue;
            const auto same = [&](const Burst& older) { return older.id == bursts[i].id; };
            if (std::any_of(bursts.begin(), bursts.begin() + i, same)) continue;
            if (splitmix(random) % ++choices == 0) found = i;
        }
        if (found == count) return false;
        taken = bursts[found];
        bursts.erase(bursts.begin() + found);
        return true;
    }

    void drive_read(uint64_t cycle) {
        if (read_waits) return;
        if (!reading && take_due(reads, cycle, read_burst)) {
            reading = true;
            read_beat = 0;
        }
        if (reading && !stalls()) {
            present();
            *p.r.valid.place = read_waits = true;
        } else if (*p.r.valid.place) {
            *p.r.valid.place = 0;
            forget_read();
        }
    }

    void present() {
        const uint64_t place = read_burst.place(read_beat), bytes = read_burst.beat_bytes(), base = place & -data_bytes;
        uint64_t response = OKAY;
        if (!memory.holds(place, bytes)) response = DECODE_ERROR;
        else if (memory.faulty_lanes(base, data_bytes)) response = SLAVE_ERROR;
        if (response != OKAY) {
            std::memset(p.r.data.place, 0, data_bytes);
        } else {
            if (bytes < data_bytes) noise(p.r.data.place, data_bytes);
            std::memcpy(p.r.data.place + (place - base), memory.settings.bytes + place, bytes);
        }
        p.r.id.set(read_burst.id);
        p.r.response.set(response);
        p.r.last.set(read_beat == read_burst.length);
    }

    void end_read_beat() {
        ++counted.read_beats;
        counted.bytes_read += read_burst.beat_bytes() - read_burst.skipped(read_beat);
        read_waits = false;
        reading = read_beat++ != read_burst.length;
    }

    void drive_answer(uint64_t cycle) {
        if (answer_waits) return;
        Burst burst;
        // The stall first: what is taken out must be sent.
        if (!stalls() && take_due(answers, cycle, burst)) {
            p.b.id.set(burst.id);
            p.b.response.set(burst.response);
            *p.b.valid.place = answer_waits = true;
        } else if (*p.b.valid.place) {
            *p.b.valid.place = 0;
            forget_answer();
        }
    }

    bool offered(const char* channel, const AddressPorts& ports, Offer& last, uint64_t cycle) {
        if (!*ports.valid.place)
            return !last.waits || broken(cycle, channel, "valid dropped before ready", last.burst.text());
        const Burst burst{ports.id.get(), ports.address.get(), ports.length.get(), ports.size.get(), ports.type.get(), 0, OKAY};
        const char* rule = last.waits ? burst.same_offer(last.burst) ? nullptr : "payload changed before ready"
                                      : broken_rule(burst);
        if (rule) return broken(cycle, channel, rule, burst.text());
        last = {!*ports.ready.place, burst};
        return true;
    }

    const char* broken_rule(const Burst& burst) const {
        const uint64_t bytes = burst.beat_bytes();
        if (burst.type == RESERVED) return "burst type is reserved";
        if (burst.length && burst.type != INCREMENTING) return "burst of several beats is not incrementing";
        if (bytes > data_bytes) return "size is larger than the data width";
        if (burst.length && burst.address & (bytes - 1)) return "address of several beats is not aligned to their size";
        if (burst.place(0) % PAGE + (burst.length + 1) * bytes > PAGE) return "burst crosses a 4 KiB boundary";
        return nullptr;
    }

    bool begin(const char* channel, const Burst& burst, uint64_t outstanding, uint64_t& bursts, uint64_t& most,
               uint64_t cycle) {
        if (outstanding == MOST_OUTSTANDING) return broken(cycle, channel, "more than 64 bursts outstanding", burst.text());
        ++bursts;
        most = std::max(most, outstanding + 1);
        return true;
    }

    bool begin_read(uint64_t cycle) {
        const uint64_t outstanding = reads.size() + reading;
        if (!begin("ar", ar_offer.burst, outstanding, counted.read_bursts, counted.most_reads, cycle)) return false;
        reads.push_back(ar_offer.burst);
        reads.back().due = cycle + latency();
        return true;
    }

    bool begin_write(uint64_t cycle) {
        const uint64_t outstanding = addressed.size() + answers.size() + answer_waits;
        if (!begin("aw", aw_offer.burst, outstanding, counted.write_bursts, counted.most_writes, cycle)) return false;
        addressed.push_back(aw_offer.burst);
        return true;
    }

    bool write_data_offered(uint64_t cycle) {
        if (!*p.w.valid.place) return !write_waits || broken(cycle, "w", "valid dropped before ready", "");
        Beat beat;
        std::memcpy(beat.data, p.w.data.place, data_bytes);
        beat.strobes = p.w.strobes.get();
        beat.last = p.w.last.get();
        beat.cycle = cycle;
        if (write_waits && (std::memcmp(beat.data, write_beat.data, data_bytes) || beat.strobes != write_beat.strobes ||
                            beat.last != write_beat.last))
            return broken(cycle, "w", "payload changed before ready", "");
        write_beat = beat;
        write_waits = !*p.w.ready.place;
        if (!write_waits) ahead.push_back(beat);
        return true;
    }

    bool take_write_data(uint64_t cycle) {
        while (!addressed.empty() && !ahead.empty()) {
            const Burst& burst = addressed.front();
            const Beat& beat = ahead.front();
            const uint64_t lane = burst.place(filled) & (data_bytes - 1);
            const uint64_t lanes = lanes_below(lane + burst.beat_bytes()) & ~lanes_below(lane + burst.skipped(filled));
            const char* rule = beat.last != (filled == burst.length)
                                   ? beat.last ? "last is high before the last beat" : "last is low in the last beat"
                               : beat.strobes & ~lanes ? "strobes outside the beat's byte lanes"
                                                       : nullptr;
            if (rule) return broken(cycle, "w", rule, "beat " + std::to_string(filled + 1) + " of " + burst.text());
            written[filled++] = beat;
            ahead.pop_front();
            if (filled == burst.length + 1) end_write(cycle);
        }
        return ahead.empty() || cycle - ahead.front().cycle < MOST_LATE ||
               broken(cycle, "w", "no address within 1000 cycles of the data", "");
    }

    void end_write(uint64_t cycle) {
        Burst burst = addressed.front();
        addressed.pop_front();
        for (uint64_t i = 0; i < filled; ++i) {
            burst.response = std::max(burst.response, apply(burst.place(i), burst.beat_bytes(), written[i]));
            counted.bytes_written += __builtin_popcountll(written[i].strobes);
        }
        counted.write_beats += filled;
        filled = 0;
        burst.due = cycle + latency();
        answers.push_back(burst);
    }

    uint64_t apply(uint64_t place, uint64_t bytes, const Beat& beat) {
        const uint64_t base = place & -data_bytes;
        if (!memory.holds(place, bytes)) return DECODE_ERROR;
        if (memory.faulty_lanes(base, data_bytes) & beat.strobes) return SLAVE_ERROR;
        if (beat.strobes == lanes_below(data_bytes)) {
            std::memcpy(memory.settings.bytes + base, beat.data, data_bytes);
        } else {
            for (uint64_t lane = 0; lane < data_bytes; ++lane)
                if (beat.strobes >> lane & 1) memory.settings.bytes[base + lane] = beat.data[lane];
        }
        return OKAY;
    }
};

inline void Memory::reset() {
    for (Manager& manager : managers) manager.reset();
}

// What the memory drives in a cycle, before the design settles.
inline void Memory::drive(uint64_t cycle) {
    for (Manager& manager : managers) manager.drive(cycle);
}

// Takes what the design does in a settled cycle. False: it broke a rule, which `error` tells.
inline bool Memory::sample(uint64_t cycle) {
    const bool resets = settings.rst && *settings.rst;
    for (Manager& manager : managers)
        if (resets ? in_reset && !manager.silent(cycle) : !manager.sample(cycle)) return false;
    if (resets) reset();
    in_reset = resets;
    return true;
}

}  // namespace axi
