/* The extension module `backlight.kernels._native`: its functions, its types, and which level of kernels runs.

   Imported by kernels/native.py alone, which compares INTERFACE. Called with the GIL; arguments are checked here or by the
   function that they go to. If the import fails, it raises, and backlight works on NumPy alone. */
#define BINDINGS_IMPORT_ARRAY
#include "bindings.h"
#include "core.h"
#include "blocks.h"
#include "kernel.h"
#include "argument_kinds.h"
#include "wrappers.h"
#include "memory.h"
#include "gemm_driver.h"
#include "gemm_amx.h"

#define INTERFACE 17 /* what kernels/native.py expects; counted up when the two must change together */

extern const struct binding matrix_bindings[], pointwise_bindings[], row_bindings[], step_bindings[], window_bindings[];
extern const struct binding norm_bindings[], loss_bindings[], channel_bindings[], group_bindings[], recurrence_bindings[];
extern const struct binding random_bindings[], arithmetic_bindings[], attention_bindings[], summary_bindings[];
extern const struct binding topk_bindings[], lu_bindings[], distance_bindings[], grid_sample_bindings[], pooling_bindings[], slice_bindings[];
static const struct binding *const families[] = {matrix_bindings, pointwise_bindings, row_bindings, step_bindings, window_bindings,
                                             norm_bindings, loss_bindings, channel_bindings, group_bindings, recurrence_bindings,
                                             random_bindings, arithmetic_bindings, attention_bindings, summary_bindings, topk_bindings,
                                             lu_bindings, distance_bindings, grid_sample_bindings, pooling_bindings, slice_bindings, NULL};

#if defined(__x86_64__)
extern const struct table table_v1_f32, table_v1_f64, table_v3_f32, table_v3_f64, table_v4_f32, table_v4_f64;
static const struct level {
  const char *name;
  const struct table *of_float, *of_double;
} levels[] = {{"amx", &table_v4_f32, &table_v4_f64}, {"v4", &table_v4_f32, &table_v4_f64}, {"v3", &table_v3_f32, &table_v3_f64}, {"v1", &table_v1_f32, &table_v1_f64}};

static int runs_here(const char *name) {
  __builtin_cpu_init();
  if (!strcmp(name, "amx") && !amx_runs_here()) return 0;
  if (!strcmp(name, "v4") || !strcmp(name, "amx"))
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("fma");
  if (!strcmp(name, "v3"))
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
  return 1;
}
#else
extern const struct table table_v1_f32, table_v1_f64;
static const struct level {
  const char *name;
  const struct table *of_float, *of_double;
} levels[] = {{"v1", &table_v1_f32, &table_v1_f64}};

static int runs_here(const char *name) {
  (void)name;
  return 1;
}
#endif

#define LEVELS (sizeof levels / sizeof *levels)
const struct table *kernels_of_float, *kernels_of_double;
static const char *level_in_use;

/* Choose the best level that runs here, or the one asked for; say whether there is one. */
static int choose_level(const char *asked) {
  for (size_t i = 0; i < LEVELS; i++)
    if (runs_here(levels[i].name) && (!asked || !strcmp(asked, levels[i].name))) {
      level_in_use = levels[i].name;
      gemm_use_amx(!strcmp(level_in_use, "amx"));
      kernels_of_float = levels[i].of_float;
      kernels_of_double = levels[i].of_double;
      return 1;
    }
  return 0;
}

static PyObject *use_level(PyObject *self, PyObject *asked) {
  (void)self;
  const char *name = PyUnicode_AsUTF8(asked);
  if (!name) return NULL;
  return PyBool_FromLong(choose_level(name));
}

static PyObject *level(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  return PyUnicode_FromString(level_in_use);
}

static PyObject *set_threads(PyObject *self, PyObject *count) {
  (void)self;
  long number = PyLong_AsLong(count);
  if (number == -1 && PyErr_Occurred()) return NULL;
  pool_set_threads(number > 1024 ? 1024 : number < 1 ? 1 : (int)number);
  Py_RETURN_NONE;
}

static PyObject *threads(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  return PyLong_FromLong(pool_threads());
}

/* Return the Kernel for a reference, found by name, or None where there is no native one. */
static PyObject *kernel(PyObject *self, PyObject *reference) {
  (void)self;
  PyObject *name = PyObject_GetAttrString(reference, "__name__");
  if (!name) return NULL;
  const char *wanted = PyUnicode_AsUTF8(name);
  for (const struct binding *const *family = families; wanted && *family; family++)
    for (const struct binding *binding = *family; binding->name; binding++)
      if (!strcmp(binding->name, wanted)) {
        Py_DECREF(name);
        return kernel_new(binding->call, reference);
      }
  Py_DECREF(name);
  if (!wanted) return NULL;
  Py_RETURN_NONE;
}

static PyDataMem_Handler handler = {
    "backlight", 1, {NULL, memory_take, memory_take_zeros, memory_resize, memory_put}};

/* Let arrays made in this context have their memory from memory.c. */
static PyObject *keep_memory(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  PyObject *capsule = PyCapsule_New(&handler, "mem_handler", NULL);
  PyObject *before = capsule ? PyDataMem_SetHandler(capsule) : NULL;
  Py_XDECREF(capsule);
  if (!before) return NULL;
  Py_DECREF(before);
  Py_RETURN_NONE;
}

static PyObject *give_memory_back(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  size_t kept = memory_kept();
  memory_give_back();
  return PyLong_FromSize_t(kept);
}

static PyMethodDef methods[] = {
    {"kernel", kernel, METH_O, "Return the native kernel of a reference's name, or None."},
    {"use_level", use_level, METH_O, "Use the kernels compiled for v1, v3, v4 or amx; return whether this machine runs them."},
    {"level", level, METH_NOARGS, "Return the level in use."},
    {"set_threads", set_threads, METH_O, "Set how many threads a kernel uses."},
    {"threads", threads, METH_NOARGS, "Return how many threads a kernel uses."},
    {"keep_memory", keep_memory, METH_NOARGS, "Keep the memory of freed arrays for new ones, in this context."},
    {"give_memory_back", give_memory_back, METH_NOARGS, "Give kept memory back to the system; return how many bytes."},
    {"core_setup", core_setup, METH_O, "Tell the core the classes and functions it works with, by name."},
    {"core_function", core_function, METH_VARARGS, "Return an op's function that runs plain small tensors in C."},
    {"core_intercepts", core_intercepts, METH_NOARGS, "Return which functions are there that intercept calls, as bits."},
    {"core_implement", core_implement, METH_VARARGS, "Say which Python function an op's function stands for."},
    {"core_dispatch", core_dispatch, METH_VARARGS, "Call this with (op or None, function, args, kwargs) in place of each call; None: nothing."},
    {"core_layouts", core_layouts, METH_VARARGS, "Set the class of the data of tensors that are not strided, and whether only these intercept calls."},
    {"core_mark", core_mark, METH_O, "Give each new tensor the storage that this makes, or None; None: give none."},
    {"core_check", core_check, METH_VARARGS, "Call this with (op, args, kwargs, out) where an op returned NaN or inf; None: look for none."},
    {"core_returned", core_returned, METH_O, "Call this with (op, args, kwargs, out) after each op; None: call nothing."},
    {"core_backward_pass", (PyCFunction)(void (*)(void))core_backward_pass, METH_FASTCALL, "Run a backward pass without hooks."},
    {"core_older", core_older, METH_O, "Call this with (function, args, kwargs) after a TypeError: it may return a result."},
    {"core_explain", core_explain, METH_O, "Call this with (function, args, kwargs, exception) after a failed call."},
    {"core_kinds", core_kinds, METH_VARARGS, "Say what tells which kinds of arguments a function takes."},
    {"checked_function", checked_function, METH_VARARGS, "Return a function whose failed calls are explained."},
    {"out_function", out_function, METH_VARARGS, "Return a function that hands calls with `out` to another one."},
    {"grad_setup", grad_setup, METH_VARARGS, "Say what holds the modes, and what says whether all threads record."},
    {"set_recording", grad_set_recording, METH_O, "Switch recording in this thread; return whether it was asked for."},
    {"set_recording_now", grad_set_recording_now, METH_O, "The same; an interrupt that has come already is raised before."},
    {"row_major", (PyCFunction)(void (*)(void))core_row_major, METH_FASTCALL, "Return whether all arrays lie row by row."},
    {"next_sequence", core_next_sequence, METH_NOARGS, "Return the next node's sequence number."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_native", "Kernels compiled for this machine.", -1, methods,
                                        NULL, NULL, NULL, NULL};

/* The names of what programs can do, in order of their numbers. */
static int add_instructions(PyObject *module) {
#define AS_NAME(name) #name,
  static const char *const names[] = {INSTRUCTIONS(AS_NAME)};
  PyObject *listed = PyTuple_New(DO_NOTHING);
  int failed = !listed;
  for (int i = 0; !failed && i < DO_NOTHING; i++) {
    PyObject *name = PyUnicode_FromString(names[i]);
    failed = !name;
    if (name) PyTuple_SET_ITEM(listed, i, name);
  }
  failed = failed || PyModule_AddObjectRef(module, "INSTRUCTIONS", listed) < 0;
  Py_XDECREF(listed);
  return failed || PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0 ? -1 : 0;
}

/* The types that Python makes objects of, or derives from. */
static int add_types(PyObject *module) {
  return PyModule_AddObjectRef(module, "CallsMode", (PyObject *)&CallsMode_Type) < 0 ||
                 PyModule_AddObjectRef(module, "GuardedCall", (PyObject *)&GuardedCall_Type) < 0 ||
                 PyModule_AddObjectRef(module, "NodeReport", (PyObject *)&NodeReport_Type) < 0 ||
                 PyModule_AddObjectRef(module, "Sender", (PyObject *)&Sender_Type) < 0 ||
                 PyModule_AddObjectRef(module, "RecordBuilder", (PyObject *)&RecordBuilder_Type) < 0
             ? -1
             : 0;
}

PyMODINIT_FUNC PyInit__native(void) {
  static int pool_is_set_up = 0;
  import_array();
  if (!pool_is_set_up && pool_setup()) return PyErr_NoMemory();
  pool_is_set_up = 1;
  if (PyType_Ready(&Kernel_Type) < 0 || PyType_Ready(&OpFunction_Type) < 0 ||
      PyType_Ready(&OutFunction_Type) < 0 || PyType_Ready(&CheckedFunction_Type) < 0 || PyType_Ready(&CallsMode_Type) < 0 ||
      PyType_Ready(&GuardedCall_Type) < 0 || PyType_Ready(&NodeReport_Type) < 0 || PyType_Ready(&Sender_Type) < 0 ||
      PyType_Ready(&RecordBuilder_Type) < 0)
    return NULL;
  if (!choose_level(NULL)) {
    PyErr_SetString(PyExc_ImportError, "none of the compiled levels runs on this processor");
    return NULL;
  }
  PyObject *module = PyModule_Create(&definition);
  if (module && (add_instructions(module) < 0 || blocks_add(module) < 0)) Py_CLEAR(module);
  if (module && add_types(module) < 0) Py_CLEAR(module);
  if (module && PyErr_Occurred()) Py_CLEAR(module); /* PyType_Ready of CPython 3.13 may leave a MemoryError set */
  return module;
}
