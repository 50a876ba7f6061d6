/* Types for `with` blocks that leave all as it was, whenever an interrupt comes: NOTE [Interrupts] in kernels/state_blocks.py.

   Python runs signal handlers between certain instructions of Python code, never inside C. So what is changed here is
   changed in one step or not at all, and a `with` over these types has no moment at which its end could be missed.
   Called with the GIL by anyone; nothing that is given is trusted: objects are held while Python code may run. */
#include "blocks.h"
#include "core.h"
#include <limits.h>
#include <stddef.h>

#if PY_VERSION_HEX >= 0x030C0000
#define BYTE_MEMBER Py_T_BYTE
#else
#include <structmember.h>
#define BYTE_MEMBER T_BYTE
#endif

#define MOST_TRIES 1000 /* of a restoration that is interrupted again and again */

/* --- grad mode ---------------------------------------------------------------------------------------------------- */

static struct {
  PyObject *modes, *recording;
  Py_ssize_t everywhere, switched_off;
  PyObject *requested, *grad_enabled, *inference, *marks, *born, *dict;
} grad;

static struct {
  PyObject *state, *change, *restore;
} names_of;

/* The switches of a thread, as its dict has them. */
struct switches {
  int requested, grad_enabled, inference, marks, born;
};

/* What a dict says of a switch, `otherwise` where it says nothing; -1 with an exception. */
static int is_on(PyObject *dict, PyObject *name, int otherwise) {
  PyObject *found = PyDict_GetItemWithError(dict, name);
  return found ? found == Py_True : PyErr_Occurred() ? -1 : otherwise;
}

static int read_switches(PyObject *dict, struct switches *found) {
  return (found->requested = is_on(dict, grad.requested, 1)) < 0 || (found->grad_enabled = is_on(dict, grad.grad_enabled, 1)) < 0 ||
                 (found->inference = is_on(dict, grad.inference, 0)) < 0 || (found->marks = is_on(dict, grad.marks, 0)) < 0
             ? -1
             : 0;
}

static int set_on(PyObject *dict, PyObject *name, int value, int before) {
  return before == value ? 0 : PyDict_SetItem(dict, name, value ? Py_True : Py_False);
}

/* This thread's dict, a new reference. */
static PyObject *own_dict(void) {
  if (!grad.modes) {
    PyErr_SetString(PyExc_RuntimeError, "grad_setup() must come first");
    return NULL;
  }
  PyObject *dict = PyObject_GetAttr(grad.modes, grad.dict);
  if (dict && !PyDict_Check(dict)) {
    PyErr_Format(PyExc_TypeError, "the modes' __dict__ must be a dict, got %R", dict);
    Py_CLEAR(dict);
  }
  return dict;
}

static int count_switched_off(int change) {
  PyObject *before = SLOT(grad.recording, grad.switched_off);
  if (!before || !PyLong_CheckExact(before)) {
    PyErr_SetString(PyExc_RuntimeError, "the count of blocks that have recording off must be an int");
    return -1;
  }
  long count = PyLong_AsLong(before);
  if (count == -1 && PyErr_Occurred()) return -1;
  if (__builtin_add_overflow(count, change, &count)) {
    PyErr_SetString(PyExc_OverflowError, "the count of blocks that have recording off is too large");
    return -1;
  }
  PyObject *number = PyLong_FromLong(count);
  if (!number) return -1;
  set_slot(grad.recording, grad.switched_off, number);
  Py_DECREF(number);
  set_slot(grad.recording, grad.everywhere, count == 0 ? Py_True : Py_False);
  return 0;
}

/* Whether tensors were made inside a transform; -1 with an exception. */
static int is_born(PyObject *dict) {
  PyObject *born = Py_XNewRef(PyDict_GetItemWithError(dict, grad.born));
  int found = born ? PyObject_IsTrue(born) : PyErr_Occurred() ? -1 : 0;
  Py_XDECREF(born);
  return found;
}

static int write_switches(PyObject *dict, const struct switches *before, int requested, int inference) {
  const int now = requested && !inference;
  if (set_on(dict, grad.requested, requested, before->requested) < 0 || set_on(dict, grad.grad_enabled, now, before->grad_enabled) < 0)
    return -1;
  if (inference != before->inference) {
    int marks = inference ? 1 : is_born(dict);
    if (marks < 0 || set_on(dict, grad.inference, inference, before->inference) < 0) return -1;
    if (set_on(dict, grad.marks, marks, before->marks) < 0) return -1;
  }
  return before->grad_enabled == now ? 0 : count_switched_off(now ? -1 : 1);
}

/* Set what was changed back, which takes no memory: what the dict has a place for is exchanged. Keeps the exception. */
static void undo_switches(PyObject *dict, const struct switches *before) {
  struct saved_error problem = save_error();
  struct switches now;
  if (read_switches(dict, &now) < 0 || set_on(dict, grad.requested, before->requested, now.requested) < 0 ||
      set_on(dict, grad.grad_enabled, before->grad_enabled, now.grad_enabled) < 0 ||
      set_on(dict, grad.inference, before->inference, now.inference) < 0 ||
      set_on(dict, grad.marks, before->marks, now.marks) < 0)
    PyErr_Clear();
  restore_error(problem);
}

/* Set what is requested and inference mode, each 0 or 1, or -1 for as it is, and all that follows from them, in one step
   or, with an exception, not at all. What was there is noted in `before`. */
static int switch_modes(PyObject *dict, int requested, int inference, struct switches *before) {
  if (read_switches(dict, before) < 0) return -1;
  if (!write_switches(dict, before, requested < 0 ? before->requested : requested, inference < 0 ? before->inference : inference)) return 0;
  undo_switches(dict, before);
  return -1;
}

PyObject *grad_set_recording(PyObject *self, PyObject *value) {
  (void)self;
  struct switches before;
  int wanted = PyObject_IsTrue(value);
  PyObject *dict = wanted < 0 ? NULL : own_dict();
  int failed = !dict || switch_modes(dict, wanted, -1, &before) < 0;
  Py_XDECREF(dict);
  return failed ? NULL : PyBool_FromLong(before.requested);
}

/* The same, for what is switched when it is made: an interrupt that has come already is raised before. */
PyObject *grad_set_recording_now(PyObject *self, PyObject *value) {
  return PyErr_CheckSignals() < 0 ? NULL : grad_set_recording(self, value);
}

/* A block with other modes; it may be entered again while it is. */
typedef struct {
  PyObject_HEAD
  signed char requested, inference, returns_to; /* 0, 1, or -1: as it was */
  char *before;                             /* for each time that it was entered: requested + 2 * inference */
  int depth, room;
} GradBlock;

static PyObject *grad_block_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  (void)args, (void)kwargs;
  GradBlock *self = (GradBlock *)type->tp_alloc(type, 0);
  if (self) self->requested = self->inference = self->returns_to = -1;
  return (PyObject *)self;
}

static void grad_block_free(PyObject *self) {
  PyMem_Free(((GradBlock *)self)->before);
  Py_TYPE(self)->tp_free(self);
}

static PyObject *grad_block_enter(GradBlock *self, PyObject *unused) {
  (void)unused;
  if (self->depth == self->room) {
    char *more = self->room > INT_MAX - 8 ? NULL : PyMem_Realloc(self->before, (size_t)self->room + 8);
    if (!more) return PyErr_NoMemory();
    self->before = more;
    self->room += 8;
  }
  struct switches before;
  PyObject *dict = own_dict();
  int failed = !dict || switch_modes(dict, self->requested, self->inference, &before) < 0;
  Py_XDECREF(dict);
  if (failed) return NULL;
  self->before[self->depth++] = (char)(before.requested + 2 * before.inference);
  Py_RETURN_NONE;
}

static PyObject *grad_block_exit(GradBlock *self, PyObject *const *args, Py_ssize_t count) {
  (void)args, (void)count;
  PyObject *dict = own_dict();
  if (!dict) return NULL;
  struct switches now;
  if (!self->depth && self->returns_to < 0) {
    Py_DECREF(dict);
    return PyErr_Format(PyExc_RuntimeError, "a %s block was left that had not been entered", Py_TYPE(self)->tp_name);
  }
  const int before = self->depth ? self->before[--self->depth] : -2; /* -2: nothing is known of inference mode */
  const int requested = self->returns_to < 0 ? before & 1 : self->returns_to;
  int failed = switch_modes(dict, requested, self->inference < 0 || before < 0 ? -1 : before >> 1, &now) < 0;
  Py_DECREF(dict);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef grad_block_methods[] = {
    {"__enter__", (PyCFunction)(void (*)(void))grad_block_enter, METH_NOARGS, "Switch."},
    {"__exit__", (PyCFunction)(void (*)(void))grad_block_exit, METH_FASTCALL, "Switch back."},
    {NULL, NULL, 0, NULL}};
static PyMemberDef grad_block_members[] = {
    {"requested", BYTE_MEMBER, offsetof(GradBlock, requested), 0, "Whether to record inside: 1, 0, or -1 to leave it."},
    {"inferring", BYTE_MEMBER, offsetof(GradBlock, inference), 0, "Inference mode inside: 1, 0, or -1 to leave it."},
    {"returns_to", BYTE_MEMBER, offsetof(GradBlock, returns_to), 0, "Whether to record afterwards; -1: as before."},
    {NULL, 0, 0, 0, NULL}};

static PyTypeObject GradBlock_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "backlight.kernels._native.GradBlock",
    .tp_basicsize = sizeof(GradBlock),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_doc = "A block with other modes.",
    .tp_new = grad_block_new,
    .tp_dealloc = grad_block_free,
    .tp_methods = grad_block_methods,
    .tp_members = grad_block_members,
};

/* Say what holds the modes, and what says whether all threads record. */
PyObject *grad_setup(PyObject *self, PyObject *args) {
  (void)self;
  PyObject *modes, *recording;
  if (!PyArg_ParseTuple(args, "OO", &modes, &recording)) return NULL;
  struct {
    const char *name;
    PyObject **at;
  } names[] = {{"requested", &grad.requested},        {"grad_enabled", &grad.grad_enabled}, {"inference", &grad.inference},
               {"marks", &grad.marks}, {"born", &grad.born},                 {"__dict__", &grad.dict}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!*names[i].at && !(*names[i].at = PyUnicode_InternFromString(names[i].name))) return NULL;
  PyObject *type = (PyObject *)Py_TYPE(recording);
  const Py_ssize_t everywhere = slot_offset(type, "everywhere");
  const Py_ssize_t switched_off = everywhere < 0 ? -1 : slot_offset(type, "switched_off");
  if (switched_off < 0) return NULL;
  PyObject *modes_before = grad.modes, *recording_before = grad.recording;
  grad.modes = Py_NewRef(modes), grad.recording = Py_NewRef(recording);
  grad.everywhere = everywhere, grad.switched_off = switched_off; /* of this object: all four change together */
  Py_XDECREF(modes_before);
  Py_XDECREF(recording_before);
  Py_RETURN_NONE;
}

/* --- any state ---------------------------------------------------------------------------------------------------- */

/* A block whose subclass says in Python what to read, to change and to restore. */
typedef struct {
  PyObject_HEAD
  PyObject *states;  /* what _block_state() gave, for each time that it was entered; NULL before the first */
  PyObject *problem; /* while it is left: the exception that leaves it, or NULL */
} Block;

/* Call _block_restore(state) until it has run to its end; 0, or -1 with the first exception. */
static int restore(PyObject *self, PyObject *state) {
  struct saved_error first;
  int failed = 0;
  for (int tries = 0; tries < MOST_TRIES; tries++) {
    PyObject *done = PyObject_CallMethodOneArg(self, names_of.restore, state);
    if (done) {
      Py_DECREF(done);
      break;
    }
    int again = !failed || !PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError);
    if (failed)
      PyErr_Clear();
    else
      first = save_error();
    failed = 1;
    if (!again) break; /* no interrupt: it fails each time */
  }
  if (!failed) return 0;
  restore_error(first);
  return -1;
}

static PyObject *block_enter(Block *self, PyObject *unused) {
  (void)unused;
  PyObject *state = PyObject_CallMethodNoArgs((PyObject *)self, names_of.state);
  if (!state) return NULL;
  if (!self->states) self->states = PyList_New(0);
  if (!self->states || PyList_Append(self->states, state) < 0) {
    Py_DECREF(state);
    return NULL;
  }
  PyObject *given = PyObject_CallMethodOneArg((PyObject *)self, names_of.change, state);
  if (!given) {
    struct saved_error first = save_error();
    Py_ssize_t count = self->states ? PyList_GET_SIZE(self->states) : 0;
    if (count && PyList_SetSlice(self->states, count - 1, count, NULL) < 0) PyErr_Clear();
    if (restore((PyObject *)self, state) < 0) PyErr_Clear(); /* the first is raised */
    restore_error(first);
  }
  Py_DECREF(state);
  return given;
}

static PyObject *block_exit(Block *self, PyObject *const *args, Py_ssize_t count) {
  Py_ssize_t depth = self->states ? PyList_GET_SIZE(self->states) : 0;
  if (!depth)
    return PyErr_Format(PyExc_RuntimeError, "a %s block was left that had not been entered", Py_TYPE(self)->tp_name);
  PyObject *state = Py_NewRef(PyList_GET_ITEM(self->states, depth - 1));
  Py_XSETREF(self->problem, count > 1 && args[1] != Py_None ? Py_NewRef(args[1]) : NULL);
  int failed = PyList_SetSlice(self->states, depth - 1, depth, NULL) < 0 || restore((PyObject *)self, state) < 0;
  Py_CLEAR(self->problem);
  Py_DECREF(state);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

static int block_traverse(Block *self, visitproc visit, void *arg) {
  Py_VISIT(self->states);
  Py_VISIT(self->problem);
  return 0;
}

static int block_clear(Block *self) {
  Py_CLEAR(self->states);
  Py_CLEAR(self->problem);
  return 0;
}

static void block_free(Block *self) {
  PyObject_GC_UnTrack(self);
  block_clear(self);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *block_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  (void)args, (void)kwargs;
  return type->tp_alloc(type, 0);
}

static PyMethodDef block_methods[] = {
    {"__enter__", (PyCFunction)(void (*)(void))block_enter, METH_NOARGS, "Note the state, and change it."},
    {"__exit__", (PyCFunction)(void (*)(void))block_exit, METH_FASTCALL, "Restore what was noted."},
    {NULL, NULL, 0, NULL}};

static PyObject *block_problem(PyObject *self, void *unused) {
  (void)unused;
  PyObject *problem = ((Block *)self)->problem;
  return Py_NewRef(problem ? problem : Py_None);
}

static PyGetSetDef block_getset[] = {
    {"_block_problem", block_problem, NULL, "The exception with which it is left, or None.", NULL}, {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject Block_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "backlight.kernels._native.Block",
    .tp_basicsize = sizeof(Block),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "A block whose changes are undone whenever an interrupt comes.",
    .tp_new = block_new,
    .tp_dealloc = (destructor)block_free,
    .tp_traverse = (traverseproc)block_traverse,
    .tp_clear = (inquiry)block_clear,
    .tp_methods = block_methods,
    .tp_getset = block_getset,
};

/* --- one attribute ------------------------------------------------------------------------------------------------ */

/* with Setting(target, name, value): the attribute has another value inside. */
typedef struct {
  PyObject_HEAD
  PyObject *target, *name, *value, *before;
} Setting;

static int setting_init(Setting *self, PyObject *args, PyObject *kwargs) {
  PyObject *target, *name, *value;
  if (kwargs && PyDict_GET_SIZE(kwargs)) {
    PyErr_SetString(PyExc_TypeError, "Setting takes no keyword arguments");
    return -1;
  }
  if (!PyArg_ParseTuple(args, "OUO", &target, &name, &value)) return -1;
  Py_XSETREF(self->target, Py_NewRef(target));
  Py_XSETREF(self->name, Py_NewRef(name));
  Py_XSETREF(self->value, Py_NewRef(value));
  return 0;
}

/* Set the attribute and return what it was. What is used is held: Python code that runs here may call __init__ again. */
static PyObject *exchanged(Setting *self, PyObject *value, int wants_before) {
  PyObject *target = Py_XNewRef(self->target), *name = Py_XNewRef(self->name), *before = NULL;
  Py_XINCREF(value);
  if (!target || !name || !value)
    PyErr_SetString(PyExc_RuntimeError, "a Setting was used that was not initialised");
  else
    before = wants_before ? PyObject_GetAttr(target, name) : Py_NewRef(Py_None);
  if (before && PyObject_SetAttr(target, name, value) < 0) Py_CLEAR(before);
  Py_XDECREF(target);
  Py_XDECREF(name);
  Py_XDECREF(value);
  return before;
}

static PyObject *setting_enter(Setting *self, PyObject *unused) {
  (void)unused;
  PyObject *before = exchanged(self, self->value, 1);
  if (!before) return NULL;
  Py_XSETREF(self->before, before);
  Py_RETURN_NONE;
}

static PyObject *setting_exit(Setting *self, PyObject *const *args, Py_ssize_t count) {
  (void)args, (void)count;
  if (!self->before) return PyErr_Format(PyExc_RuntimeError, "a Setting was left that had not been entered");
  PyObject *done = exchanged(self, self->before, 0);
  if (!done) return NULL;
  Py_DECREF(done);
  Py_CLEAR(self->before);
  Py_RETURN_NONE;
}

static int setting_traverse(Setting *self, visitproc visit, void *arg) {
  Py_VISIT(self->target);
  Py_VISIT(self->value);
  Py_VISIT(self->before);
  return 0;
}

static int setting_clear(Setting *self) {
  Py_CLEAR(self->target);
  Py_CLEAR(self->name);
  Py_CLEAR(self->value);
  Py_CLEAR(self->before);
  return 0;
}

static void setting_free(Setting *self) {
  PyObject_GC_UnTrack(self);
  setting_clear(self);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef setting_methods[] = {
    {"__enter__", (PyCFunction)(void (*)(void))setting_enter, METH_NOARGS, "Set it."},
    {"__exit__", (PyCFunction)(void (*)(void))setting_exit, METH_FASTCALL, "Set it back."},
    {NULL, NULL, 0, NULL}};

static PyTypeObject Setting_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "backlight.kernels._native.Setting",
    .tp_basicsize = sizeof(Setting),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "A block in which an attribute has another value.",
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)setting_init,
    .tp_dealloc = (destructor)setting_free,
    .tp_traverse = (traverseproc)setting_traverse,
    .tp_clear = (inquiry)setting_clear,
    .tp_methods = setting_methods,
};

/* --- generators --------------------------------------------------------------------------------------------------- */

/* What contextlib's class does, without Python code between the block and the generator's own `finally`. */
typedef struct {
  PyObject_HEAD
  PyObject *steps; /* the generator */
} GeneratorBlock;

static PyObject *generator_block_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  (void)args, (void)kwargs;
  return type->tp_alloc(type, 0);
}

/* The generator, a new reference, for it may be replaced while it runs; NULL with an exception if there is none. */
static PyObject *steps_of(GeneratorBlock *self) {
  if (self->steps && PyIter_Check(self->steps)) return Py_NewRef(self->steps);
  PyErr_SetString(PyExc_TypeError, "a block needs a generator");
  return NULL;
}

static PyObject *generator_block_enter(GeneratorBlock *self, PyObject *unused) {
  (void)unused;
  PyObject *steps = steps_of(self);
  if (!steps) return NULL;
  PyObject *given = Py_TYPE(steps)->tp_iternext(steps);
  Py_DECREF(steps);
  if (!given && !PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "generator didn't yield");
  return given;
}

/* The generator ended without an exception, or with StopIteration, which is taken away. */
static int has_stopped(void) {
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_StopIteration)) return 0;
  PyErr_Clear();
  return 1;
}

static PyObject *generator_block_throw(PyObject *steps, PyObject *problem, PyObject *trace) {
  PyObject *given = PyObject_CallMethod(steps, "throw", "(O)", problem);
  if (given) {
    Py_DECREF(given);
    PyErr_SetString(PyExc_RuntimeError, "generator didn't stop after throw()");
    return NULL;
  }
  PyObject *raised = take_raised(), *cause = raised ? PyException_GetCause(raised) : NULL;
  int same = raised == problem;
  if (!same && cause == problem && PyErr_GivenExceptionMatches(problem, PyExc_StopIteration))
    same = PyErr_GivenExceptionMatches(raised, PyExc_RuntimeError);
  int stopped = !same && raised && PyErr_GivenExceptionMatches(raised, PyExc_StopIteration);
  Py_XDECREF(cause);
  if (!same && !stopped) {
    raise_again(raised);
    return NULL;
  }
  Py_XDECREF(raised);
  if (same && trace != Py_None && PyException_SetTraceback(problem, trace) < 0) return NULL;
  return PyBool_FromLong(stopped);
}

static PyObject *generator_block_finish(PyObject *steps) {
  PyObject *given = Py_TYPE(steps)->tp_iternext(steps);
  if (!given && has_stopped()) Py_RETURN_FALSE;
  if (given) PyErr_SetString(PyExc_RuntimeError, "generator didn't stop");
  Py_XDECREF(given);
  return NULL;
}

static PyObject *generator_block_exit(GeneratorBlock *self, PyObject *const *args, Py_ssize_t count) {
  if (count != 3) return PyErr_Format(PyExc_TypeError, "__exit__ takes an exception's type, value, trace");
  PyObject *steps = steps_of(self), *problem, *found = NULL;
  if (!steps) return NULL;
  if (args[0] == Py_None) {
    found = generator_block_finish(steps);
  } else {
    problem = args[1] == Py_None ? PyObject_CallNoArgs(args[0]) : Py_NewRef(args[1]);
    if (problem) found = generator_block_throw(steps, problem, args[2]);
    Py_XDECREF(problem);
  }
  Py_DECREF(steps);
  return found;
}

static int generator_block_traverse(GeneratorBlock *self, visitproc visit, void *arg) {
  Py_VISIT(self->steps);
  return 0;
}

static int generator_block_clear(GeneratorBlock *self) {
  Py_CLEAR(self->steps);
  return 0;
}

static void generator_block_free(GeneratorBlock *self) {
  PyObject_GC_UnTrack(self);
  Py_CLEAR(self->steps);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef generator_block_methods[] = {
    {"__enter__", (PyCFunction)(void (*)(void))generator_block_enter, METH_NOARGS, "Run up to the yield."},
    {"__exit__", (PyCFunction)(void (*)(void))generator_block_exit, METH_FASTCALL, "Run the rest."},
    {NULL, NULL, 0, NULL}};

static PyObject *generator_block_steps(PyObject *self, void *unused) {
  (void)unused;
  PyObject *steps = ((GeneratorBlock *)self)->steps;
  return Py_NewRef(steps ? steps : Py_None);
}

static int generator_block_set_steps(PyObject *self, PyObject *steps, void *unused) {
  (void)unused;
  Py_XSETREF(((GeneratorBlock *)self)->steps, Py_XNewRef(steps)); /* NULL: deleted */
  return 0;
}

static PyGetSetDef generator_block_getset[] = {
    {"steps", generator_block_steps, generator_block_set_steps, "The generator.", NULL}, {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject GeneratorBlock_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "backlight.kernels._native.GeneratorBlock",
    .tp_basicsize = sizeof(GeneratorBlock),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "A block that a generator describes.",
    .tp_new = generator_block_new,
    .tp_dealloc = (destructor)generator_block_free,
    .tp_traverse = (traverseproc)generator_block_traverse,
    .tp_clear = (inquiry)generator_block_clear,
    .tp_methods = generator_block_methods,
    .tp_getset = generator_block_getset,
};

/* --- context variables -------------------------------------------------------------------------------------------- */

/* with ContextSetting(variable, make): the variable has the value that make() returns. */
typedef struct {
  PyObject_HEAD
  PyObject *variable, *make, *before, *token;
} ContextSetting;

static int context_setting_init(ContextSetting *self, PyObject *args, PyObject *kwargs) {
  PyObject *variable, *make;
  (void)kwargs;
  if (!PyArg_ParseTuple(args, "O!O", &PyContextVar_Type, &variable, &make)) return -1;
  Py_XSETREF(self->variable, Py_NewRef(variable));
  Py_XSETREF(self->make, Py_NewRef(make));
  return 0;
}

static PyObject *context_setting_enter(ContextSetting *self, PyObject *unused) {
  (void)unused;
  if (!self->make) return PyErr_Format(PyExc_RuntimeError, "a ContextSetting was used that was not initialised");
  PyObject *make = Py_NewRef(self->make), *variable = Py_NewRef(self->variable), *before = NULL;
  PyObject *value = PyObject_CallNoArgs(make);
  const int known = value && !PyContextVar_Get(variable, NULL, &before); /* NULL: it has no value */
  PyObject *token = known ? PyContextVar_Set(variable, value) : NULL;
  Py_DECREF(make);
  Py_DECREF(variable);
  Py_XDECREF(value);
  if (!token) {
    Py_XDECREF(before);
    return NULL;
  }
  Py_XSETREF(self->before, before);
  Py_XSETREF(self->token, token);
  Py_RETURN_NONE;
}

/* Set the variable back. Both ways take memory, and the token is spent after one try: so there are more, by its value. */
static int set_back(PyObject *variable, PyObject *token, PyObject *before) {
  if (!PyContextVar_Reset(variable, token)) return 0;
  for (int tries = 0; tries < MOST_TRIES && before && PyErr_ExceptionMatches(PyExc_MemoryError); tries++) {
    PyErr_Clear();
    PyObject *spare = PyContextVar_Set(variable, before);
    Py_XDECREF(spare);
    if (spare) return 0;
  }
  return -1;
}

static PyObject *context_setting_exit(ContextSetting *self, PyObject *const *args, Py_ssize_t count) {
  (void)args, (void)count;
  if (!self->token) return PyErr_Format(PyExc_RuntimeError, "a ContextSetting was left that had not been entered");
  /* Held while the value that goes may run Python code. */
  PyObject *variable = Py_NewRef(self->variable), *token = Py_NewRef(self->token), *before = Py_XNewRef(self->before);
  int failed = set_back(variable, token, before) < 0;
  Py_DECREF(variable);
  Py_DECREF(token);
  Py_XDECREF(before);
  if (failed) return NULL;
  Py_CLEAR(self->token);
  Py_CLEAR(self->before);
  Py_RETURN_NONE;
}

static int context_setting_traverse(ContextSetting *self, visitproc visit, void *arg) {
  Py_VISIT(self->variable);
  Py_VISIT(self->make);
  Py_VISIT(self->before);
  Py_VISIT(self->token);
  return 0;
}

static int context_setting_clear(ContextSetting *self) {
  Py_CLEAR(self->variable);
  Py_CLEAR(self->make);
  Py_CLEAR(self->before);
  Py_CLEAR(self->token);
  return 0;
}

static void context_setting_free(ContextSetting *self) {
  PyObject_GC_UnTrack(self);
  context_setting_clear(self);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef context_setting_methods[] = {
    {"__enter__", (PyCFunction)(void (*)(void))context_setting_enter, METH_NOARGS, "Set it."},
    {"__exit__", (PyCFunction)(void (*)(void))context_setting_exit, METH_FASTCALL, "Set it back."},
    {NULL, NULL, 0, NULL}};

static PyTypeObject ContextSetting_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "backlight.kernels._native.ContextSetting",
    .tp_basicsize = sizeof(ContextSetting),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "A block in which a context variable has another value.",
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)context_setting_init,
    .tp_dealloc = (destructor)context_setting_free,
    .tp_traverse = (traverseproc)context_setting_traverse,
    .tp_clear = (inquiry)context_setting_clear,
    .tp_methods = context_setting_methods,
};

/* --------------------------------------------------------------------------------------------------------------- */

int blocks_add(PyObject *module) {
  PyTypeObject *const types[] = {&GradBlock_Type, &Block_Type, &Setting_Type, &GeneratorBlock_Type, &ContextSetting_Type};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (PyModule_AddType(module, types[i]) < 0) return -1;
  static const char *const called[] = {"_block_state", "_block_change", "_block_restore"};
  PyObject **const at[] = {&names_of.state, &names_of.change, &names_of.restore};
  for (int i = 0; i < 3; i++)
    if (!(*at[i] = PyUnicode_InternFromString(called[i]))) return -1;
  return 0;
}
