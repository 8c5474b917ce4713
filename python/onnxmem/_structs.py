# SPDX-License-Identifier: Apache-2.0
"""The structs of the C interface that the package reads or writes.

Names of classes and fields are those of the headers: ``om_plan_arena`` is :class:`PlanArena`.  A test compiles a C program
that compares size and offsets of every field with these classes.  Structs that are only reached through pointers
may end early (``PREFIXES``).
"""
from __future__ import annotations

import ctypes as c

MAX_RANK = 12
NO_VALUE = 0xFFFFFFFF
POOL_ANY = 0xFFFFFFFF
OFFSET_FREE = -1

DTYPES = (
    "undefined", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "float64", "uint32",
    "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "uint4", "int4", "float4e2m1", "float8e8m0", "uint2", "int2", "float6e2m3", "float6e3m2",
)
STRING = DTYPES.index("string")
KINDS = ("tensor", "sparse", "sequence", "optional", "map", "opaque")
TENSOR, SPARSE, SEQUENCE, OPTIONAL, MAP, OPAQUE = range(6)
LOCATIONS = ("unused", "arena", "caller", "weight", "unplanned")
UNUSED, IN_ARENA, EXTERNAL, WEIGHT, UNPLANNED = range(5)
ALIASES = ("view", "inplace", "donate", "io", "subbuffer", "consume")
ALIAS_IO, ALIAS_CONSUME = ALIASES.index("io"), ALIASES.index("consume")
TARGETS = ("generic", "cpu")
IO = ("caller", "arena", "keep")
HAS_PLAN = 1 << 6
LOG_WARN, LOG_INFO = 1, 2
FLAG_TEXT, FLAG_NUMBER, FLAG_FLOAT = range(3)
ANNOTATE_MODEL, ANNOTATE_VALUE, ANNOTATE_AUTO, ANNOTATE_ONNXSIM, ANNOTATE_ORIGINAL = (1 << k for k in range(5))
REPORT_TEXT, REPORT_JSON, REPORT_CSV, REPORT_SVG, REPORT_HTML, REPORT_ASCII, REPORT_ORT, REPORT_MARKDOWN = range(8)
PACK_OPTIMAL = 0

logger = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p)
progress = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_uint64, c.c_uint64)


class String(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size", c.c_size_t)]


class Shape(c.Structure):
    _fields_ = [("rank", c.c_int), ("dim", c.c_int64 * MAX_RANK), ("sym", c.c_char_p * MAX_RANK)]


class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("type", c.c_int), ("splat", c.c_bool), ("shape", Shape)]


class Container(c.Structure):
    _fields_ = [("n", c.c_size_t), ("item", c.POINTER(Tensor)), ("key", Tensor), ("value", Tensor), ("room", c.c_void_p)]


class Type(c.Structure):
    pass


Type._fields_ = [("kind", c.c_int), ("elem", c.c_int), ("of", c.POINTER(Type))]


class Op(c.Structure):
    _fields_ = [("opdef", c.c_void_p), ("opaque", c.c_char_p), ("call", c.c_void_p), ("type", c.c_char_p),
                ("domain", c.c_char_p), ("overload", c.c_char_p), ("version", c.c_int), ("name", c.c_char_p)]


class Block(c.Structure):
    pass


class Value(c.Structure):
    _fields_ = [("name", c.c_char_p), ("block", c.POINTER(Block)), ("def", c.POINTER(Op)), ("first_use", c.c_void_p),
                ("last_use", c.c_void_p), ("nuse", c.c_uint32), ("id", c.c_uint32), ("type", Type), ("shape", Shape),
                ("data", c.POINTER(Tensor)), ("elem", c.c_void_p), ("is_const", c.c_bool), ("is_overridable", c.c_bool),
                ("is_declared", c.c_bool), ("has_run_sizes", c.c_bool)]


Block._fields_ = [("name", c.c_char_p), ("path", c.c_char_p), ("attr", c.c_char_p), ("prog", c.c_void_p),
                  ("owner", c.POINTER(Op)), ("param", c.POINTER(c.POINTER(Value))), ("result", c.POINTER(c.POINTER(Value))),
                  ("use", c.c_void_p), ("nparam", c.c_uint32), ("nresult", c.c_uint32)]


class PlanArena(c.Structure):
    _fields_ = [("name", c.c_char_p), ("device", c.c_char_p), ("bytes", c.c_uint64), ("align", c.c_uint64), ("limit", c.c_uint64),
                ("naive", c.c_uint64), ("lower_bound", c.c_uint64), ("bound_step", c.c_uint32), ("order_bound", c.c_uint64),
                ("is_limited", c.c_bool), ("status", c.c_int)]


class DimRange(c.Structure):
    _fields_ = [("symbol", c.c_char_p), ("low", c.c_int64), ("high", c.c_int64), ("step", c.c_int64)]


class Steps(c.Structure):
    _fields_ = [("first", c.c_uint32), ("last", c.c_uint32)]


class LiveInterval(c.Structure):
    _fields_ = [("first", c.c_uint32), ("last", c.c_uint32), ("range", c.c_void_p), ("nrange", c.c_uint32)]


class Placement(c.Structure):
    _fields_ = [("where", c.c_int), ("arena", c.c_uint32), ("offset", c.c_uint64), ("bytes", c.c_uint64), ("live", LiveInterval)]


class Alias(c.Structure):
    _fields_ = [("kind", c.c_int), ("value", c.c_uint32), ("source", c.c_uint32), ("offset", c.c_uint64)]


class Unplanned(c.Structure):
    _fields_ = [("value", c.c_uint32), ("why", c.c_char_p)]


class Pin(c.Structure):
    _fields_ = [("value", c.c_char_p), ("arena", c.c_char_p)]


class Plan(c.Structure):
    _fields_ = [("mem", c.c_void_p), ("strategy", c.c_char_p), ("parallel_safe", c.c_bool), ("schedule", c.c_void_p),
                ("target", c.c_int), ("threads", c.c_uint32), ("precise", c.c_bool), ("align", c.c_uint64),
                ("arena", c.POINTER(PlanArena)), ("range", c.POINTER(DimRange)), ("place", c.POINTER(Placement)),
                ("alias", c.POINTER(Alias)), ("view", c.c_void_p), ("scratch", c.c_void_p), ("unplanned", c.POINTER(Unplanned)),
                ("floor", c.c_uint64), ("floor_op", c.c_void_p), ("op_floor", c.c_void_p), ("peak", c.c_void_p), ("formulas", c.c_void_p),
                ("narena", c.c_uint32), ("nplace", c.c_uint32), ("nalias", c.c_uint32),
                ("nview", c.c_uint32), ("nscratch", c.c_uint32), ("nunplanned", c.c_uint32), ("npeak", c.c_uint32),
                ("nrange", c.c_uint32), ("pin", c.POINTER(Pin)), ("npin", c.c_uint32), ("stated", c.c_void_p), ("streams", c.c_void_p)]


class IoAlias(c.Structure):
    _fields_ = [("result", c.c_uint32), ("param", c.c_uint32), ("axis", c.c_int), ("rows_before", c.c_int64), ("rows_after", c.c_int64),
                ("symbol", c.c_char_p)]


class Prog(c.Structure):
    _fields_ = [("mem", c.c_void_p), ("name", c.c_char_p), ("first", c.POINTER(Block)), ("last", c.POINTER(Block)),
                ("values", c.POINTER(c.POINTER(Value))), ("nvalue", c.c_uint32), ("nblock", c.c_uint32), ("nop", c.c_uint32),
                ("capvalue", c.c_size_t), ("functions", c.c_void_p), ("opset", c.c_void_p), ("nopset", c.c_size_t),
                ("ir_version", c.c_int), ("nstep", c.c_uint32), ("has", c.c_uint), ("facts", c.c_void_p),
                ("io_alias", c.POINTER(IoAlias)), ("nio_alias", c.c_uint32), ("cap_io_alias", c.c_size_t),
                ("dim_definition", c.c_void_p), ("ndim_definition", c.c_size_t), ("cap_dim_definition", c.c_size_t), ("names", c.c_void_p),
                ("assignment", c.c_void_p), ("op_facts", c.c_void_p), ("plan", c.POINTER(Plan))]


class ArenaSpec(c.Structure):
    _fields_ = [("name", c.c_char_p), ("device", c.c_char_p), ("limit", c.c_uint64), ("align", c.c_uint64)]


class IoRule(c.Structure):
    _fields_ = [("name", c.c_char_p), ("where", c.c_int)]


class ScratchNeed(c.Structure):
    _fields_ = [("value", c.c_char_p), ("bytes", c.c_uint64)]


class PlanRequest(c.Structure):
    _fields_ = [("size", c.c_size_t), ("arena", c.POINTER(ArenaSpec)), ("narena", c.c_uint32), ("align", c.c_uint64),
                ("parallel_safe", c.c_bool), ("target", c.c_int), ("threads", c.c_uint32), ("precise", c.c_bool),
                ("io", c.c_int), ("io_rule", c.POINTER(IoRule)), ("nio_rule", c.c_uint32), ("ranged", c.c_bool),
                ("total", c.c_uint64), ("search_nodes", c.c_uint64), ("pin", c.POINTER(Pin)), ("npin", c.c_uint32),
                ("exact_sizes", c.c_bool), ("scratch", c.POINTER(ScratchNeed)), ("nscratch", c.c_uint32), ("streams", c.c_uint32),
                ("keep_states", c.c_bool)]


class PassFlag(c.Structure):
    _fields_ = [("name", c.c_char_p), ("option", c.c_char_p), ("arg", c.c_char_p), ("value", c.c_char_p),
                ("brief", c.c_char_p), ("kind", c.c_int), ("min", c.c_uint64), ("max", c.c_uint64), ("adds", c.c_bool)]


class PassCounter(c.Structure):
    _fields_ = [("name", c.c_char_p), ("brief", c.c_char_p)]


class Pass(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("abi", c.c_int), ("name", c.c_char_p), ("brief", c.c_char_p),
                ("needs", c.c_uint), ("gives", c.c_uint), ("keeps", c.c_uint), ("options", c.c_void_p),
                ("counters", c.POINTER(PassCounter)), ("flags", c.POINTER(PassFlag))]


class Run(c.Structure):
    _fields_ = [("session", c.c_void_p), ("scratch", c.c_void_p), ("pass", c.POINTER(Pass)), ("option", c.c_void_p),
                ("counter", c.POINTER(c.c_uint64))]


pass_hook = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Pass), c.POINTER(Run), c.POINTER(Prog), c.c_double)


class FlagSet(c.Structure):
    _fields_ = [("pass", c.POINTER(Pass)), ("flag", c.POINTER(PassFlag)), ("value", c.c_char_p)]


class ExecOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("no_reuse", c.c_bool), ("poison", c.c_bool), ("profile", c.c_bool),
                ("kernels", c.c_void_p), ("max_memory", c.c_uint64), ("max_iterations", c.c_uint64),
                ("threads", c.c_uint32), ("precise", c.c_bool), ("cache", c.c_char_p), ("device", c.c_void_p),
                ("device_options", c.c_char_p), ("streams", c.c_uint32),
                ("arena", c.c_void_p), ("narena", c.c_uint32), ("comm", c.c_void_p), ("keep_states", c.c_bool),
                ("no_capture", c.c_bool)]


class ExecOp(c.Structure):
    _fields_ = [("op", c.POINTER(Op)), ("calls", c.c_uint64), ("ms", c.c_double), ("least_ms", c.c_double)]


class ExecStats(c.Structure):
    _fields_ = [("arena_bytes", c.c_uint64), ("weight_bytes", c.c_uint64), ("unplanned_bytes", c.c_uint64),
                ("object_bytes", c.c_uint64), ("copied_bytes", c.c_uint64), ("steps", c.c_uint64), ("runs", c.c_uint64),
                ("device_bytes", c.c_uint64), ("transferred_bytes", c.c_uint64), ("captured_commands", c.c_uint64),
                ("replays", c.c_uint64), ("op", c.POINTER(ExecOp)), ("nop", c.c_uint32)]


class Interval(c.Structure):
    _fields_ = [("lower", c.c_uint32), ("upper", c.c_uint32), ("from", c.c_uint64), ("to", c.c_uint64)]


class Buffer(c.Structure):
    _fields_ = [("name", c.c_char_p), ("bytes", c.c_uint64), ("align", c.c_uint64), ("live", c.c_void_p), ("nlive", c.c_uint32),
                ("fixed", c.c_int64), ("fixed_pool", c.c_uint32), ("access_bytes", c.c_uint64), ("offset", c.c_uint64),
                ("pool", c.c_uint32)]


class PackResult(c.Structure):
    _fields_ = [("height", c.c_uint64), ("lower_bound", c.c_uint64), ("bound_step", c.c_uint32), ("status", c.c_int),
                ("strategy", c.c_char_p), ("is_limited", c.c_bool)]


class Pool(c.Structure):
    _fields_ = [("name", c.c_char_p), ("limit", c.c_uint64), ("align", c.c_uint64), ("result", PackResult)]


class PackGroup(c.Structure):
    _fields_ = [("member", c.c_void_p), ("n", c.c_uint32)]


class Problem(c.Structure):
    _fields_ = [("size", c.c_size_t), ("buf", c.c_void_p), ("n", c.c_uint32), ("pool", c.POINTER(Pool)), ("npool", c.c_uint32),
                ("group", c.POINTER(PackGroup)), ("ngroup", c.c_uint32), ("by_pairs", c.c_bool), ("pair", c.c_void_p),
                ("npair", c.c_uint64), ("proven", c.c_uint64), ("nodes", c.c_uint64), ("seconds", c.c_double)]


class TrainOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("loss", c.c_char_p), ("loss_fn", c.c_char_p), ("output", c.c_char_p),
                ("label", c.c_char_p), ("wrt", c.POINTER(c.c_char_p)), ("nwrt", c.c_size_t), ("clip_norm", c.c_double),
                ("clip_value", c.c_double), ("optimizer", c.c_char_p), ("rate", c.c_double), ("momentum", c.c_double),
                ("beta1", c.c_double), ("beta2", c.c_double), ("epsilon", c.c_double), ("decay", c.c_double),
                ("trains", c.c_bool), ("keeps_outputs", c.c_bool), ("copies", c.c_bool), ("functions", c.c_bool),
                ("fuses_updates", c.c_bool)]


class TileOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("budget", c.c_uint64), ("nodes", c.c_uint64), ("only_concat", c.c_bool),
                ("extra_flops", c.c_uint64)]


class TiledRegion(c.Structure):
    _fields_ = [("first", c.c_char_p), ("last", c.c_char_p), ("axis", c.c_char_p), ("join", c.c_char_p), ("ops", c.c_uint32),
                ("bands", c.c_uint32), ("steps", c.c_uint32)]


class TiledCopy(c.Structure):
    _fields_ = [("value", c.c_char_p), ("ops", c.c_uint32), ("flops", c.c_double)]


class TiledStep(c.Structure):
    _fields_ = [("op", c.c_char_p), ("why", c.c_char_p), ("bytes", c.c_uint64)]


class TiledPeak(c.Structure):
    _fields_ = [("bytes", c.c_uint64), ("ops", c.c_uint32), ("regions", c.c_uint32), ("copies", c.c_uint32)]


class Tiling(c.Structure):
    _fields_ = [("before", c.c_uint64), ("after", c.c_uint64), ("ops_before", c.c_uint32), ("ops_after", c.c_uint32),
                ("flops_before", c.c_double), ("flops_after", c.c_double), ("region", c.POINTER(TiledRegion)), ("n", c.c_uint32),
                ("copy", c.POINTER(TiledCopy)), ("ncopy", c.c_uint32), ("outside", c.POINTER(TiledStep)),
                ("peak", c.POINTER(TiledPeak)), ("noutside", c.c_uint32), ("npeak", c.c_uint32), ("missed", c.c_uint64),
                ("stop", TiledStep), ("floor", c.c_uint64), ("floor_op", c.c_char_p)]


fetch_progress = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_uint64, c.c_uint64)
transfer_progress = c.CFUNCTYPE(None, c.c_void_p, c.c_uint64, c.c_uint64)
FETCH_DONE, FETCH_RETRY, FETCH_FAILED, FETCH_LOCAL = range(4)


class FetchTransfer(c.Structure):
    _fields_ = [("url", c.c_char_p), ("fd", c.c_int), ("most", c.c_uint64), ("seconds", c.c_double), ("progress", transfer_progress),
                ("progress_arg", c.c_void_p), ("end", c.c_int), ("retry_after", c.c_double), ("reason", c.c_char * 400)]


transfer = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(FetchTransfer))


class FetchOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("cache", c.c_char_p), ("mirror", c.POINTER(c.c_char_p)), ("nmirror", c.c_size_t),
                ("manifest", c.c_char_p), ("builtin", c.c_char_p), ("hf_base", c.c_char_p), ("sha256", c.c_char_p),
                ("opset", c.c_uint64), ("with_data", c.c_bool), ("offline", c.c_bool), ("timeout", c.c_double),
                ("attempts", c.c_uint64), ("retry_delay", c.c_double), ("progress", fetch_progress), ("transfer", transfer),
                ("arg", c.c_void_p)]


class Step(c.Structure):
    _fields_ = [("loss", c.c_uint32), ("rate", c.c_uint32), ("sample", c.POINTER(c.c_uint32)), ("nsample", c.c_uint32)]


class PlanMemory(c.Structure):
    _fields_ = [("arenas", c.c_uint64), ("io", c.c_uint64), ("weights", c.c_uint64), ("total", c.c_uint64)]


class TuneOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("seconds", c.c_double), ("total", c.c_uint64), ("arena", c.c_uint64), ("has_slowdown", c.c_bool),
                ("slowdown", c.c_double), ("cache", c.c_char_p), ("measure", c.c_void_p), ("now", c.c_void_p), ("arg", c.c_void_p)]


class TuneChoice(c.Structure):
    _fields_ = [("name", c.c_char_p), ("ms", c.c_double), ("weights", c.c_uint64), ("scratch", c.c_uint64), ("was_known", c.c_bool)]


class TunedLayer(c.Structure):
    _fields_ = [("key", c.c_char_p), ("ops", c.c_uint32), ("choice", c.POINTER(TuneChoice)), ("nchoice", c.c_uint32), ("chosen", c.c_uint32)]


class TunedPlan(c.Structure):
    _fields_ = [("ms", c.c_double), ("memory", PlanMemory)]


class Tuned(c.Structure):
    _fields_ = [("isa", c.c_char_p), ("threads", c.c_uint32), ("layer", c.POINTER(TunedLayer)), ("n", c.c_uint32), ("usual", TunedPlan),
                ("chosen", TunedPlan), ("is_kept", c.c_bool), ("unmeasured", c.c_uint32), ("choices", c.c_char_p)]


class RateSchedule(c.Structure):
    _fields_ = [("shape", c.c_int), ("steps", c.c_uint64), ("factor", c.c_double), ("warmup", c.c_uint64)]


release = c.CFUNCTYPE(None, c.c_void_p)


class EagerOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("opset", c.c_int), ("threads", c.c_uint32), ("no_replay", c.c_bool), ("max_memory", c.c_uint64),
                ("result_bytes", c.c_uint64), ("tape_bytes", c.c_uint64), ("programs", c.c_uint32), ("callbacks", c.c_void_p)]


class EagerStats(c.Structure):
    _fields_ = [(name, c.c_uint64) for name in (
        "calls", "computed", "replayed", "replays", "diverged", "programs", "kernels", "variables", "pool_bytes", "used_bytes",
        "peak_bytes", "arena_bytes", "last_arena_bytes", "remembered", "result_bytes", "dropped", "recomputed")]


class Attr(c.Structure):
    _fields_ = [("name", c.c_char_p), ("kind", c.c_int), ("n", c.c_size_t), ("i", c.c_void_p), ("ref", c.c_char_p), ("origin", c.c_void_p)]


class ForeignMemory(c.Structure):
    _fields_ = [("data", c.c_void_p), ("type", c.c_int), ("rank", c.c_int), ("dim", c.POINTER(c.c_int64)), ("stride", c.POINTER(c.c_int64)),
                ("device", c.c_char_p), ("release", release), ("arg", c.c_void_p)]


class CallbackCall(c.Structure):
    _fields_ = [("arg", c.c_void_p), ("session", c.c_void_p), ("op", c.c_void_p), ("nin", c.c_uint32), ("nout", c.c_uint32),
                ("in", c.POINTER(Tensor)), ("out", c.POINTER(Tensor))]


callback = c.CFUNCTYPE(c.c_int, c.POINTER(CallbackCall))


class Callback(c.Structure):
    _fields_ = [("size", c.c_size_t), ("name", c.c_char_p), ("nin", c.c_uint32), ("nout", c.c_uint32), ("is_pure", c.c_bool),
                ("infer", callback), ("run", callback), ("backward", callback), ("backward_inputs", c.c_uint64),
                ("backward_outputs", c.c_uint64), ("arg", c.c_void_p), ("release", release)]


# Structs that have more fields in C, after those that are declared here.
PREFIXES = (Op, Value, Block, Prog, Pass, Run)

# C names of all structs.
STRUCTS: dict[str, type[c.Structure]] = {
    "om_string": String, "om_shape": Shape, "om_tensor": Tensor, "om_container": Container, "om_type": Type, "om_op": Op,
    "om_value": Value, "om_block": Block, "om_plan_arena": PlanArena, "om_dim_range": DimRange, "om_steps": Steps,
    "om_live_interval": LiveInterval,
    "om_placement": Placement, "om_alias": Alias, "om_unplanned": Unplanned, "om_plan": Plan, "om_prog": Prog,
    "om_arena_spec": ArenaSpec, "om_io_rule": IoRule, "om_pin": Pin, "om_tile_options": TileOptions, "om_tiled_region": TiledRegion, "om_tiled_step": TiledStep, "om_tiled_peak": TiledPeak, "om_tiled_copy": TiledCopy, "om_tiling": Tiling,
    "om_plan_request": PlanRequest, "om_pass_flag": PassFlag,
    "om_pass_counter": PassCounter, "om_pass": Pass, "om_run": Run, "om_flag_set": FlagSet, "om_exec_options": ExecOptions,
    "om_exec_op": ExecOp, "om_exec_stats": ExecStats, "om_interval": Interval, "om_buffer": Buffer,
    "om_pack_result": PackResult, "om_pool": Pool, "om_pack_group": PackGroup, "om_problem": Problem,
    "om_train_options": TrainOptions, "om_fetch_options": FetchOptions, "om_fetch_transfer": FetchTransfer, "om_step": Step, "om_rate_schedule": RateSchedule, "om_tune_options": TuneOptions, "om_tune_choice": TuneChoice,
    "om_tuned_layer": TunedLayer, "om_tuned_plan": TunedPlan, "om_tuned": Tuned, "om_plan_memory": PlanMemory,
    "om_eager_options": EagerOptions, "om_eager_stats": EagerStats, "om_attr": Attr, "om_memory": ForeignMemory,
    "om_callback": Callback, "om_callback_call": CallbackCall,
}
