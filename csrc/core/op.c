/* `OpFunction`: an op's public function. Small plain tensors are computed and recorded here, all other calls in Python.

   Called with the GIL, for every op. The op's plan was checked by core/plan.c; the arguments are not: their types are
   tested before a slot is read, and what does not fit is declined before anything is written. Arrays are held while
   Python code may run. Raises only what Python code that it calls raised, and MemoryError. */
#include "core.h"
#include "argument_kinds.h"
#include "wrappers.h"
#include "kernel.h"
#include <stddef.h>

#define MOST_NUMBERS 65536 /* larger ones go to kernels that use all threads */

typedef struct {
  struct wrapper base;
  PyObject *op; /* its declaration */
  PyObject *laid_out; /* the function for arrays that do not all lie row by row, or NULL: the same one */
  struct plan *plan;
  int state;        /* UNKNOWN until the first call, then PLANNED or PYTHON */
  int plan_is_kept; /* backward passes may hold it: it is never freed */
  struct argument_check check;
} OpFunction;
enum { UNKNOWN, PLANNED, PYTHON };

/* --- recording ---------------------------------------------------------------------------------------------------- */

/* Whether ops are recorded in this thread: 1, 0, or -1 where Python must look (inference mode, errors). */
static int records(void) {
  if (SLOT(core.recording, core.everywhere) == Py_True) return 1;
  PyObject *enabled = PyObject_GetAttr(core.modes, core.name_grad_enabled);
  PyObject *inference = enabled ? PyObject_GetAttr(core.modes, core.name_inference) : NULL;
  int found = inference ? (inference == Py_True ? -1 : enabled == Py_True) : -1;
  PyErr_Clear();
  Py_XDECREF(enabled);
  Py_XDECREF(inference);
  return found;
}

/* Note the user's line on a node: the code object and the instruction; see engine/provenance.py. */
static int note_place(PyObject *node) {
  PyFrameObject *frame = PyEval_GetFrame();
  if (!frame) {
    SET_NEW(node, core.code, Py_NewRef(Py_None));
    SET_NEW(node, core.lasti, PyLong_FromLong(0));
    return SLOT(node, core.lasti) ? 0 : -1;
  }
  Py_INCREF(frame);
  PyObject *code = (PyObject *)PyFrame_GetCode(frame);
  if (code != SLOT(core.latest, core.latest_code)) {
    int known = PySet_Contains(core.user_files, ((PyCodeObject *)code)->co_filename);
    if (known == 1) {
      set_slot(core.latest, core.latest_code, code);
    } else {
      PyObject *outer = known < 0 ? NULL : PyObject_CallOneArg(core.user_frame, (PyObject *)frame);
      Py_DECREF(frame);
      Py_DECREF(code);
      if (!outer) return -1;
      if (!PyFrame_Check(outer)) {
        PyErr_Format(PyExc_TypeError, "user_frame must return a frame, got %R", outer);
        Py_DECREF(outer);
        return -1;
      }
      frame = (PyFrameObject *)outer;
      code = (PyObject *)PyFrame_GetCode(frame);
    }
  }
  SET_NEW(node, core.code, code);
  SET_NEW(node, core.lasti, PyLong_FromLong(PyFrame_GetLasti(frame)));
  Py_DECREF(frame);
  return SLOT(node, core.lasti) ? 0 : -1;
}

/* The version of a tensor's storage: 0 where none was made. A new reference. */
static PyObject *version_of(PyObject *tensor) {
  PyObject *storage = SLOT(tensor, core.storage_slot);
  if (!storage) return PyErr_Format(PyExc_AttributeError, "%.100s object has no _storage", Py_TYPE(tensor)->tp_name);
  if (storage == Py_None) return PyLong_FromLong(0);
  Py_INCREF(storage); /* its version may be a property, which may give the tensor another storage */
  PyObject *version = PyObject_GetAttr(storage, core.name_version);
  Py_DECREF(storage);
  return version;
}

/* Make the node of an op and give it to the output; 0, or -1 with an exception. What the inputs' slots hold was there
   when they were looked at; the versions that are read here may be properties, after which anything may have changed. */
static int record(struct plan *plan, PyObject *const *inputs, PyObject *out, PyObject *data) {
  PyObject *node = plan->node_class->tp_alloc(plan->node_class, 0);
  PyObject *edges = node ? PyTuple_New(plan->differentiable) : NULL; /* last: the collector must not find it unfilled */
  if (!edges) {
    Py_XDECREF(node);
    return -1;
  }
  unsigned wanted = 0;
  for (int e = 0; e < plan->differentiable; e++) {
    PyObject *tensor = inputs[plan->edge_input[e]], *edge = SLOT(tensor, core.edge);
    if (edge == core.leaf) edge = tensor;
    if (!edge) edge = Py_None;
    if (edge != Py_None) wanted |= 1u << e;
    PyTuple_SET_ITEM(edges, e, Py_NewRef(edge));
  }
  SET_NEW(node, core.edges, edges);
  SET_NEW(node, core.sequence, PyLong_FromLongLong(next_sequence++));
  SET_NEW(node, core.extra, Py_NewRef(Py_None));
  if (!SLOT(node, core.sequence) || note_place(node) < 0) goto failed;
  if (plan->restore_slot) SET_NEW(node, plan->restore_slot, Py_NewRef(Py_None));
  for (int i = 0; i < plan->inputs; i++) {
    if (!plan->saves[i]) continue;
    PyObject *kept = !plan->users[i] || (plan->users[i] & wanted) ? inputs[i] : core.not_saved;
    PyObject *version = kept == core.not_saved ? PyLong_FromLong(0) : version_of(inputs[i]);
    if (!version) goto failed;
    SET_NEW(node, plan->input_slot[i], Py_NewRef(kept));
    SET_NEW(node, plan->version_slot[i], version);
  }
  if (plan->saves_out) {
    PyObject *present = SLOT(out, core.storage_slot);
    PyObject *storage = present && present != Py_None ? Py_NewRef(present) : core.storage->tp_alloc(core.storage, 0);
    if (!storage) goto failed;
    if (storage != present) set_slot(out, core.storage_slot, storage);
    SET_NEW(node, plan->out_slot, Py_NewRef(data));
    SET_NEW(node, plan->out_storage, storage);
    SET_NEW(node, plan->out_version, PyLong_FromLong(0));
    if (!SLOT(node, plan->out_version)) goto failed;
  }
  for (int c = 0; c < plan->constants; c++) SET_NEW(node, plan->constant_slot[c], Py_NewRef(plan->constant[c]));
  set_slot(out, core.edge, node);
  Py_DECREF(node);
  return 0;
failed:
  Py_DECREF(node);
  return -1;
}

/* --- the call ----------------------------------------------------------------------------------------------------- */

static int is_tensor(PyObject *object) {
  return Py_TYPE(object) == core.tensor || PyType_IsSubtype(Py_TYPE(object), core.tensor_state);
}

/* A Python number beside a tensor, as a tensor of that tensor's kind. NULL: leave it to Python. */
static PyObject *number_beside(PyObject *number, int kind) {
  double value;
  if (PyFloat_CheckExact(number)) {
    value = PyFloat_AS_DOUBLE(number);
  } else if (PyLong_CheckExact(number)) {
    int overflow;
    long long whole = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow || whole > 1 << 24 || whole < -(1 << 24)) return NULL;
    value = (double)whole;
  } else {
    return NULL;
  }
  return new_tensor(new_scalar(kind, value));
}

/* Compute and record; NULL without an exception: declined. The arrays are held: a finalizer may exchange a tensor's. */
static PyObject *run_op(struct plan *plan, PyObject *const *args) {
  const int count = plan->inputs;
  struct numbers numbers[MOST_INPUTS];
  PyObject *inputs[MOST_INPUTS], *held[MOST_INPUTS]; /* held while Python may run: what it runs may replace the arrays */
  PyObject *made = NULL, *data = NULL, *out = NULL;
  const void *sources[MOST_INPUTS];
  int kind = -1, widest = -1, late = -1;
  for (int i = 0; i < count; i++) {
    inputs[i] = args[i];
    if (!is_tensor(args[i])) {
      if (!i || late >= 0 || !plan->restore_slot || count != 2) return NULL; /* Python decides on a number first */
      late = i;
      continue;
    }
    PyObject *present = SLOT(args[i], core.data);
    if (!present || !read_numbers(present, &numbers[i]) || (kind >= 0 && kind != numbers[i].kind)) return NULL;
    kind = numbers[i].kind;
  }
  if (kind < 0) return NULL;
  const int python_runs = late >= 0 || SLOT(core.recording, core.everywhere) != Py_True;
  if (python_runs)
    for (int i = 0; i < count; i++) held[i] = i == late ? NULL : Py_NewRef(SLOT(args[i], core.data));
  if (late >= 0) {
    made = number_beside(args[late], kind);
    if (!made) {
      PyErr_Clear();
      goto done;
    }
    inputs[late] = made;
    if (!read_numbers(SLOT(made, core.data), &numbers[late])) goto done;
    held[late] = Py_NewRef(SLOT(made, core.data));
  }
  /* The shape of the result: that of the first array that has dims; all others have it too, or are single numbers. */
  int edges = 0, single = 0;
  for (int i = 0; i < count; i++) {
    PyObject *edge = SLOT(inputs[i], core.edge);
    if (!edge) goto done; /* deleted: Python says so */
    if (edge != Py_None) edges |= 1 << i;
    if (!numbers[i].array || !PyArray_NDIM(numbers[i].array)) {
      single |= 1 << i;
    } else if (widest < 0) {
      widest = i;
    } else if (!same_shape(numbers[i].array, numbers[widest].array)) {
      goto done;
    }
    sources[i] = numbers[i].at;
  }
  if (widest >= 0 && ((edges & single) || numbers[widest].count > MOST_NUMBERS)) goto done;
  if (widest >= 0 && !is_row_major(numbers[widest].array)) goto done; /* Python gives the result its strides */
  int recorded = records();
  if (recorded < 0) goto done;
  if (widest >= 0) {
    data = (PyObject *)empty_like(numbers[widest].array);
    if (!data) goto done;
    table_of(kind)->run_program(&plan->forward, sources, single, PyArray_DATA((PyArrayObject *)data), numbers[widest].count);
  } else {
    data = new_scalar(kind, 0);
    if (!data) goto done;
    table_of(kind)->run_program(&plan->forward, sources, single, scalar_value(data), 1);
  }
  out = new_tensor(Py_NewRef(data));
  if (core.mark && out && mark(out) < 0) Py_CLEAR(out);
  if (out && edges && recorded && plan->differentiable) {
    int any = 0;
    for (int e = 0; e < plan->differentiable; e++) any |= edges >> plan->edge_input[e] & 1;
    if (any && record(plan, inputs, out, data) < 0) Py_CLEAR(out);
  }
done:
  if (python_runs)
    for (int i = 0; i < count; i++) Py_XDECREF(held[i]);
  Py_XDECREF(data);
  Py_XDECREF(made);
  return out;
}

/* Whether the arrays of all tensors among the arguments lie row by row. */
static int lie_in_rows(PyObject *const *args, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) {
    if (is_tensor(args[i])) {
      PyObject *data = SLOT(args[i], core.data);
      if (data && Py_TYPE(data) == &PyArray_Type && !is_row_major((PyArrayObject *)data)) return 0;
    } else if (PyList_CheckExact(args[i]) || PyTuple_CheckExact(args[i])) {
      if (!lie_in_rows(PySequence_Fast_ITEMS(args[i]), PySequence_Fast_GET_SIZE(args[i]))) return 0;
    }
  }
  return 1;
}

/* Call the function that gives results PyTorch's strides (NOTE [Memory order of results] in kernels/memory_order.py). */
static PyObject *call_laid_out(OpFunction *self, PyObject *const *args, size_t flags, PyObject *names) {
  PyObject *laid_out = Py_NewRef(self->laid_out), *found = PyObject_Vectorcall(laid_out, args, flags, names);
  Py_DECREF(laid_out);
  return found ? found : failed_call((PyObject *)self, args, PyVectorcall_NARGS(flags), names);
}

static int make_plan(OpFunction *self) __attribute__((noinline, cold)); /* once for each op: kept out of the code of its calls */

static inline PyObject *direct_call(OpFunction *self, PyObject *const *args, size_t flags, PyObject *names) {
  if (self->state == UNKNOWN && core.ready && make_plan(self) < 0) return NULL;
  if (self->state == PLANNED && PyVectorcall_NARGS(flags) == self->plan->inputs && (!names || !PyTuple_GET_SIZE(names))) {
    PyObject *out = run_op(self->plan, args);
    if (out || PyErr_Occurred()) return out;
  }
  if (check_arguments(&self->check, (PyObject *)self, args, PyVectorcall_NARGS(flags), names) < 0)
    return older_call((PyObject *)self, args, PyVectorcall_NARGS(flags), names);
  if (self->laid_out && !lie_in_rows(args, PyVectorcall_NARGS(flags) + (names ? PyTuple_GET_SIZE(names) : 0)))
    return call_laid_out(self, args, flags, names);
  return call_explained(&self->base, args, flags, names);
}

/* Call `to` with (op, args, kwargs, out), a new reference that is given back; return `out`, or NULL if that failed. */
static PyObject *notify(OpFunction *self, PyObject *to, PyObject *const *args, size_t flags, PyObject *names, PyObject *out) {
  PyObject *given = NULL, *options = NULL, *done = NULL;
  if (!gather_arguments(args, PyVectorcall_NARGS(flags), names, &given, &options)) {
    PyObject *event[] = {self->op, given, options, out};
    done = PyObject_Vectorcall(to, event, 4, NULL);
  }
  if (!done) Py_CLEAR(out);
  Py_XDECREF(done);
  Py_XDECREF(options);
  Py_XDECREF(given);
  Py_DECREF(to);
  return out;
}

static int nonfinite_among(PyObject *out) {
  if (!PyTuple_Check(out)) return is_tensor(out) ? nonfinite_in(SLOT(out, core.data)) : 0;
  int found = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(out); i++) {
    PyObject *one = PyTuple_GET_ITEM(out, i);
    if (is_tensor(one)) found |= nonfinite_in(SLOT(one, core.data));
  }
  return found;
}

/* Call, and look at what comes out in anomaly mode: see NOTE [Anomalies] in dispatch/anomaly_mode.py. */
static PyObject *checked_call(OpFunction *self, PyObject *const *args, size_t flags, PyObject *names) {
  PyObject *out = direct_call(self, args, flags, names);
  if (!core.nonfinite_op || !core.ready || !out) return out;
  int found = nonfinite_among(out);
  if (!core.nonfinite_op || !(found & core.nonfinite_wanted)) return out;
  return notify(self, Py_NewRef(core.nonfinite_op), args, flags, names, out);
}

/* A call while something intercepts calls: it is dispatched first; if nothing handles it, the op runs, and its result is
   reported. See NOTE [Dispatch] in dispatch/dispatcher.py. */
static PyObject *dispatched_call(OpFunction *self, PyObject *const *args, size_t flags, PyObject *names) {
  if (!reference_of(&self->base)) return NULL;
  if (core.dispatch && core.dispatches_ops && !is_plain_call(args, PyVectorcall_NARGS(flags), names)) {
    PyObject *unhandled = core.unhandled, *out = call_dispatch(self->op, (PyObject *)self, args, PyVectorcall_NARGS(flags), names);
    if (out != unhandled) return out;
    Py_DECREF(out);
  }
  PyObject *returned = Py_XNewRef(core.returned), *out = checked_call(self, args, flags, names);
  if (out && returned) return notify(self, returned, args, flags, names, out);
  Py_XDECREF(returned);
  return out;
}

static PyObject *function_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names) {
  return (core.intercepts ? dispatched_call : direct_call)((OpFunction *)object, args, flags, names);
}

static void exchange(PyObject **held, PyObject *given) {
  PyObject *old = *held;
  *held = given == Py_None ? NULL : Py_NewRef(given);
  Py_XDECREF(old);
}

static void note_interception(void) { core.intercepts = core.dispatch || core.returned || core.nonfinite_op; }

/* core_dispatch(dispatch or None, unhandled, ops, only_classes, only_functions or None): have `dispatch` called in place of public functions; None:
   nothing. It returns `unhandled` for a call that is to go on. `ops`: whether it gets the calls of ops, too. `only_classes`:
   whether only classes of arguments can handle a call now, so that it need not be asked about a call whose arguments are
   all Tensors (no subclasses), numbers, texts or None. `only_functions`: a dict of the functions, of those that are no ops,
   whose calls it gets; None: of all. */
PyObject *core_dispatch(PyObject *self, PyObject *args) {
  (void)self;
  PyObject *dispatch, *unhandled, *only_functions = Py_None;
  int ops, only_classes = 0;
  if (!PyArg_ParseTuple(args, "OOp|pO", &dispatch, &unhandled, &ops, &only_classes, &only_functions)) return NULL;
  if (only_functions != Py_None && !PyDict_CheckExact(only_functions))
    return PyErr_Format(PyExc_TypeError, "only_functions must be a dict or None, got %R", only_functions);
  core.dispatches_ops = ops;
  core.only_classes = only_classes;
  Py_XSETREF(core.unhandled, Py_NewRef(unhandled));
  exchange(&core.only_functions, only_functions);
  exchange(&core.dispatch, dispatch);
  note_interception();
  Py_RETURN_NONE;
}

/* core_layouts(class, only): the class of `_data` of tensors that are not strided, and whether only these intercept calls
   now: then `dispatch` need not be asked about a call without one. */
PyObject *core_layouts(PyObject *self, PyObject *args) {
  (void)self;
  PyTypeObject *layout;
  int only;
  if (!core.ready) return PyErr_Format(PyExc_RuntimeError, "the core must be set up before layouts are declared");
  if (!PyArg_ParseTuple(args, "O!p", &PyType_Type, &layout, &only)) return NULL;
  Py_XSETREF(core.layout, (PyTypeObject *)Py_NewRef(layout));
  core.only_layouts = only;
  Py_RETURN_NONE;
}

/* core_returned(returned or None): what is called with (op, args, kwargs, out) after each op. */
PyObject *core_returned(PyObject *self, PyObject *returned) {
  (void)self;
  exchange(&core.returned, returned);
  note_interception();
  Py_RETURN_NONE;
}

/* core_check(nonfinite_op or None, nonfinite_kinds): what to call where an op returns one of these, from now on. */
PyObject *core_check(PyObject *self, PyObject *args) {
  (void)self;
  PyObject *nonfinite_op;
  int wanted;
  if (!PyArg_ParseTuple(args, "Oi", &nonfinite_op, &wanted)) return NULL;
  core.nonfinite_wanted = wanted;
  exchange(&core.nonfinite_op, nonfinite_op);
  note_interception();
  Py_RETURN_NONE;
}

PyObject *core_mark(PyObject *self, PyObject *make_storage) {
  (void)self;
  exchange(&core.mark, make_storage);
  Py_RETURN_NONE;
}

/* Which of these are there, as bits: dispatch, returned, nonfinite_op, mark. */
PyObject *core_intercepts(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  return PyLong_FromLong((core.dispatch != NULL) | (core.returned != NULL) << 1 | (core.nonfinite_op != NULL) << 2 | (core.mark != NULL) << 3);
}

/* core_implement(an OpFunction, function, laid_out): what it stands for from now on, or what it calls for arrays that do not
   all lie row by row; in Python, which bounds its recursion. */
PyObject *core_implement(PyObject *self, PyObject *args) {
  (void)self;
  PyObject *function, *implementation;
  int laid_out = 0;
  if (!PyArg_ParseTuple(args, "O!O!|p", &OpFunction_Type, &function, &PyFunction_Type, &implementation, &laid_out)) return NULL;
  if (laid_out)
    Py_XSETREF(((OpFunction *)function)->laid_out, Py_NewRef(implementation));
  else
    Py_XSETREF(((struct wrapper *)function)->reference, Py_NewRef(implementation));
  Py_RETURN_NONE;
}

/* --- plans -------------------------------------------------------------------------------------------------------- */

static int make_plan(OpFunction *self) {
  if (!reference_of(&self->base)) return -1;
  self->state = PYTHON; /* while Python prepares, and if it cannot be translated */
  PyObject *declared = PyObject_CallOneArg(core.prepare, self->op);
  if (!declared) return -1;
  if (declared != Py_None && (self->plan = plan_read(declared))) {
    self->plan_is_kept = plan_keep(self->plan);
    self->state = PLANNED;
  }
  Py_DECREF(declared);
  return PyErr_Occurred() ? -1 : 0;
}

/* --- the type ----------------------------------------------------------------------------------------------------- */

static int function_traverse(OpFunction *self, visitproc visit, void *arg) {
  Py_VISIT(self->base.reference);
  Py_VISIT(self->op);
  Py_VISIT(self->laid_out);
  return 0;
}

static int function_clear(OpFunction *self) {
  Py_CLEAR(self->base.reference);
  Py_CLEAR(self->op);
  Py_CLEAR(self->laid_out);
  return 0;
}

static void function_dealloc(OpFunction *self) {
  PyObject_GC_UnTrack(self);
  function_clear(self);
  if (self->plan && !self->plan_is_kept) plan_dispose(self->plan);
  free_argument_check(&self->check);
  PyObject_GC_Del(self);
}

static int function_setattro(PyObject *self, PyObject *name, PyObject *value) {
  return set_on_reference((struct wrapper *)self, name, value);
}

static PyObject *function_bind(PyObject *self, PyObject *object, PyObject *type) {
  (void)type;
  return object && object != Py_None ? PyMethod_New(self, object) : Py_NewRef(self);
}

static PyObject *function_repr(OpFunction *self) { return repr_of_reference(&self->base); }

PyTypeObject OpFunction_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "backlight.kernels._native.OpFunction",
    .tp_basicsize = sizeof(OpFunction),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_vectorcall_offset = offsetof(struct wrapper, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_traverse = (traverseproc)function_traverse,
    .tp_clear = (inquiry)function_clear,
    .tp_dealloc = (destructor)function_dealloc,
    .tp_getattro = wrapper_getattro,
    .tp_setattro = function_setattro,
    .tp_descr_get = function_bind,
    .tp_repr = (reprfunc)function_repr,
    .tp_methods = wrapper_methods,
    .tp_getset = wrapper_getset,
};

/* Return an OpFunction for (the Python function, its op). */
PyObject *core_function(PyObject *self, PyObject *args) {
  (void)self;
  PyObject *function, *op;
  if (!PyArg_ParseTuple(args, "OO", &function, &op)) return NULL;
  OpFunction *made = PyObject_GC_New(OpFunction, &OpFunction_Type);
  if (!made) return NULL;
  made->base.vectorcall = function_call;
  made->base.reference = Py_NewRef(function);
  made->op = Py_NewRef(op);
  made->laid_out = NULL;
  made->plan = NULL;
  made->state = UNKNOWN;
  made->plan_is_kept = 0;
  made->check = (struct argument_check){0};
  PyObject_GC_Track(made);
  return (PyObject *)made;
}
