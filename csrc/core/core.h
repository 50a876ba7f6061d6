/* The engine's short paths in C, shared by all files of core: an op's call on small plain tensors, and the backward pass.

   The classes stay Python's (engine/tensor_state.py, engine/node.py): C reads and writes their slots at the offsets of their
   member descriptors, after a test of the object's type. Whatever is not plain is declined, and the Python code runs, which
   is the reference: both record the same graph. All of this needs the GIL, and nothing here releases it except NumPy.

   NOTE [Slots]
   Python code may delete a slot, put anything into it, or make an object whose slots were never filled. So a slot may
   hold NULL or an object of any type: C tests what it reads before it uses it, and declines what it did not expect.
   The result of such a test is valid only until Python code may run again. Python code may run where C calls it, looks an
   attribute up, makes an object that the garbage collector tracks (a collection may run finalizers), or gives a reference
   up. */
#ifndef CORE_H
#define CORE_H

#include "bindings.h"

#define MOST_INPUTS 4

/* What Python gives at start (codegen/core_ops.py): classes, markers, functions, and where slots lie. */
struct core {
  PyTypeObject *tensor, *tensor_state, *node, *output, *storage;
  PyObject *leaf, *not_saved, *latest, *recording, *modes, *user_files, *user_frame, *add_to_grad, *say_where, *prepare;
  int intercepts;      /* whether one of the next three is there: the one flag that every call tests */
  PyObject *dispatch;  /* called as dispatch(op or None, function, args, kwargs) in place of a call; else NULL */
  PyObject *returned;  /* called as returned(op, args, kwargs, out) after each op while there are observers; else NULL */
  PyObject *mark; /* gives each new tensor its storage, or None, while a transform is open; else NULL */
  PyObject *nonfinite_op; /* called as nonfinite_op(op, args, kwargs, out) where an op returned an oddity that is looked for; else NULL */
  PyObject *nonfinite_node; /* called as nonfinite_node(roots, node, grad, grads, first) where a node returned one: it raises */
  int nonfinite_wanted; /* of ops: FOUND_NAN, FOUND_INF or both */
  PyObject *unhandled; /* what `dispatch` returns where it leaves a call alone */
  int dispatches_ops;  /* whether `dispatch` gets the calls of ops, too */
  int only_classes;    /* whether it leaves alone each call whose arguments are all Tensors, numbers, texts or None */
  PyTypeObject *layout; /* the class of `_data` of tensors whose layout is not strided; NULL before there is one */
  int only_layouts;     /* whether it leaves alone each call without such a tensor */
  PyObject *only_functions; /* a dict: of functions that are no ops it gets only these; NULL: all of them */
  Py_ssize_t data, edge, storage_slot, view;                     /* of a tensor */
  Py_ssize_t edges, sequence, code, lasti, extra;                /* of a node */
  Py_ssize_t output_node, output_number;                         /* of an Output */
  Py_ssize_t latest_code, everywhere;                            /* of provenance.latest and modes.recording */
  PyObject *name_version, *name_grad_enabled, *name_inference, *name_outputs, *name_wants_undefined, *name_backward, *name_free;
  PyObject *name_hooks, *name_post_accumulate_hooks, *name_accumulator, *name_grad; /* attributes, interned */
  int ready;
};
extern struct core core;

#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))
/* Fill an empty slot; the reference is taken over. */
#define SET_NEW(object, offset, value) (SLOT(object, offset) = (value))

static inline void set_slot(PyObject *object, Py_ssize_t offset, PyObject *value) {
  PyObject *old = SLOT(object, offset);
  SLOT(object, offset) = Py_NewRef(value);
  Py_XDECREF(old);
}

Py_ssize_t slot_offset(PyObject *type, const char *name); /* -1 with an exception if there is none */
int is_plain_class(PyObject *type);                       /* a class whose objects are slots alone: the core may make them empty */

/* The exception that is set, taken away; and put back, which takes the reference over. */
static inline PyObject *take_raised(void) {
#if PY_VERSION_HEX >= 0x030C0000
  return PyErr_GetRaisedException();
#else
  PyObject *type, *problem, *traceback;
  PyErr_Fetch(&type, &problem, &traceback);
  if (!type) return NULL;
  PyErr_NormalizeException(&type, &problem, &traceback);
  if (traceback) PyException_SetTraceback(problem, traceback);
  Py_XDECREF(traceback);
  Py_DECREF(type);
  return problem;
#endif
}

static inline void raise_again(PyObject *problem) {
#if PY_VERSION_HEX >= 0x030C0000
  PyErr_SetRaisedException(problem);
#else
  if (problem) PyErr_Restore(Py_NewRef(Py_TYPE(problem)), problem, PyException_GetTraceback(problem));
#endif
}

/* The exception that is set, laid aside as it is: before Python 3.12 that makes no object, which would take memory. */
struct saved_error {
#if PY_VERSION_HEX >= 0x030C0000
  PyObject *problem;
#else
  PyObject *type, *value, *traceback;
#endif
};

static inline struct saved_error save_error(void) {
  struct saved_error found;
#if PY_VERSION_HEX >= 0x030C0000
  found.problem = PyErr_GetRaisedException();
#else
  PyErr_Fetch(&found.type, &found.value, &found.traceback);
#endif
  return found;
}

/* Raise it; another exception that is set meanwhile is lost. */
static inline void restore_error(struct saved_error found) {
#if PY_VERSION_HEX >= 0x030C0000
  PyErr_SetRaisedException(found.problem);
#else
  PyErr_Restore(found.type, found.value, found.traceback);
#endif
}

/* Numbers as programs take them: an array in C order, or one number (NumPy scalar, 0-d array). */
struct numbers {
  const void *at;
  long count;
  int kind;            /* NPY_FLOAT or NPY_DOUBLE */
  PyArrayObject *array; /* NULL for a NumPy scalar */
};
/* Whether an array lies row by row with the strides that it would be allocated with, in dims of size 1 too. */
static inline int is_row_major(PyArrayObject *array) {
  if (!PyArray_IS_C_CONTIGUOUS(array)) return 0;
  npy_intp stride = PyArray_ITEMSIZE(array);
  for (int dim = PyArray_NDIM(array) - 1; dim >= 0; dim--) {
    const npy_intp size = PyArray_DIM(array, dim);
    if (!size) return 1;
    if (PyArray_STRIDE(array, dim) != stride) return 0;
    stride *= size;
  }
  return 1;
}

int read_numbers(PyObject *data, struct numbers *found);   /* 0 if it is neither, or NULL */
PyObject *new_scalar(int kind, double value);              /* a NumPy scalar */
void *scalar_value(PyObject *scalar);                      /* where its number lies */
PyObject *new_tensor(PyObject *data);                      /* takes the reference over; edge, storage, view are None */
int mark(PyObject *tensor); /* give it the storage that core.mark makes, if anything records where tensors are made */
int held_by_one(PyObject *data); /* whether an array's memory is its own, and only one reference holds it: it may be written */

/* A derivative: which edge, its program, and what the program reads, in order. */
struct derivative {
  int passes;                /* it is the incoming gradient itself */
  int source[MOST_SOURCES];  /* SOURCE_GRAD, SOURCE_OUT, or the number of an input */
  struct program program;
};
enum { SOURCE_GRAD = -1, SOURCE_OUT = -2 };

/* An op as C runs it, and its class of nodes. */
struct plan {
  int inputs, differentiable;
  struct program forward;
  int edge_input[MOST_INPUTS];         /* edge -> input */
  int saves[MOST_INPUTS];              /* whether the node keeps an input */
  unsigned users[MOST_INPUTS];         /* edges that need it, as bits; 0: always */
  Py_ssize_t input_slot[MOST_INPUTS], version_slot[MOST_INPUTS];
  int saves_out;
  Py_ssize_t out_slot, out_storage, out_version;
  Py_ssize_t restore_slot;                 /* 0 if the op does not broadcast */
  int constants;                       /* options that the node keeps, at their defaults */
  Py_ssize_t constant_slot[MOST_INPUTS];
  PyObject *constant[MOST_INPUTS];
  PyTypeObject *node_class;
  struct derivative derivative[MOST_INPUTS];
};

struct plan *plan_read(PyObject *given);              /* what Python says of an op; NULL with an exception */
void plan_dispose(struct plan *plan);                 /* free one that was never kept */
int plan_keep(struct plan *plan);                     /* run nodes of its class by it; 1: it is kept for good, 0: it is not */
struct plan *plan_of_class(PyTypeObject *node_class); /* NULL for nodes that Python runs */
int plan_run(struct plan *plan, PyObject *node, PyObject *grad, unsigned wanted, PyObject **found);
void plan_free(struct plan *plan, PyObject *node); /* drop what the node saved */
PyObject *sum_of_two(PyObject *present, PyObject *grad); /* takes `present` over; in place where only the pass holds it */

extern PyTypeObject OpFunction_Type, CallsMode_Type, GuardedCall_Type, NodeReport_Type, RecordBuilder_Type, Sender_Type;
PyObject *core_setup(PyObject *self, PyObject *named);
PyObject *core_function(PyObject *self, PyObject *args);
PyObject *core_intercepts(PyObject *self, PyObject *unused);
PyObject *core_implement(PyObject *self, PyObject *args);
PyObject *core_dispatch(PyObject *self, PyObject *args);
PyObject *core_layouts(PyObject *self, PyObject *args);
PyObject *core_returned(PyObject *self, PyObject *returned);
PyObject *core_mark(PyObject *self, PyObject *make_storage);
PyObject *core_check(PyObject *self, PyObject *args);
int nonfinite_in(PyObject *data); /* FOUND_NAN, FOUND_INF: what is there among an array's numbers; see core/nonfinite.c */
PyObject *core_backward_pass(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *core_row_major(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *core_next_sequence(PyObject *self, PyObject *unused);
extern long long next_sequence;

#endif
