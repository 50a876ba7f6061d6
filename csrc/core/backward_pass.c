/* The backward pass without hooks: collect the nodes, sort them by sequence number, run each, add up gradients that meet.

   It does what engine/backward_pass.py does where there are no hooks and no create_graph, and the tests hold it to that
   file; it declines before anything is written where there is a hook. Observers are called through an ObservedRun
   (dispatch/observed_pass.py); leaves are then written as soon as their last gradient has arrived, where hooks would see
   it. Called with the GIL, by the engine. Edges and gradients come from Python and may be any objects: types are tested
   before slots are read, counts before indices. */
#include "core.h"
#include <limits.h>
#include <stdlib.h>

struct entry {
  PyObject *key;  /* a node or a leaf */
  PyObject *grad; /* what has arrived; a list for nodes of several outputs */
  struct plan *plan;
  long long sequence;
  PyObject *captured; /* of a node that is an input: the gradient that it ran with */
  int leaf;
  int input;   /* its gradient is an input's */
  int wanted;  /* its gradient leads to an input, or no inputs are given */
  int runs;    /* of a node: one of its edges does */
  int unseen;  /* what has arrived was not looked at: it began the pass, or is a sum */
  int pending; /* of a leaf, if deliveries are counted: edges that have yet to propagate */
};

struct backward_pass {
  struct entry *entries;
  int count, room;
  int *places; /* open addresses; -1: free */
  size_t mask;
  int *order, nodes;
  PyObject *inputs;   /* a tuple of the edges whose gradients alone are wanted, or NULL */
  int accumulate_grad;      /* gradients of inputs are added to `.grad`; else they are captured */
  long long since;    /* nodes with a lower sequence number lead to no input */
  PyObject *observed; /* reports the pass to observers, or NULL */
  int odd;            /* what to look for in gradients: FOUND_NAN, FOUND_INF; 0 without anomaly mode */
  int counted;        /* whether leaves are written as soon as their last gradient has arrived */
  PyObject *roots, *first_infinite; /* the node that made infinity of a finite gradient first, or NULL */
};

enum { DECLINE = -2, FAIL = -1, KEPT_BYTES = 2048 };

/* --- the table of what is reached --------------------------------------------------------------------------------- */

static size_t first_place(const struct backward_pass *pass, PyObject *key) {
  return ((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15ull >> 20 & pass->mask;
}

/* Where the number of a node or leaf stands, or would. */
static int *place_of(const struct backward_pass *pass, PyObject *key) {
  size_t at = first_place(pass, key);
  while (pass->places[at] >= 0 && pass->entries[pass->places[at]].key != key) at = (at + 1) & pass->mask;
  return &pass->places[at];
}

static int grow(struct backward_pass *pass) {
  if (pass->room > INT_MAX / 2) { /* numbers of entries are ints */
    PyErr_NoMemory();
    return FAIL;
  }
  const int room = pass->room ? pass->room * 2 : 128;
  struct entry *entries = PyMem_Realloc(pass->entries, (size_t)room * sizeof *entries);
  if (entries) pass->entries = entries;
  int *order = PyMem_Realloc(pass->order, (size_t)room * sizeof *order);
  if (order) pass->order = order;
  int *places = PyMem_Malloc(2 * (size_t)room * sizeof *places);
  if (!entries || !order || !places) {
    PyMem_Free(places);
    PyErr_NoMemory();
    return FAIL;
  }
  PyMem_Free(pass->places);
  pass->places = places;
  pass->room = room;
  pass->mask = 2 * (size_t)room - 1;
  for (size_t i = 0; i <= pass->mask; i++) places[i] = -1;
  for (int i = 0; i < pass->count; i++) *place_of(pass, entries[i].key) = i;
  return 0;
}

/* The node or leaf at the end of an edge; NULL for an Output without one. See NOTE [Slots] in core.h. */
static PyObject *key_of(PyObject *edge) { return Py_TYPE(edge) == core.output ? SLOT(edge, core.output_node) : edge; }

/* The edges of a node, a new reference; NULL without an exception if they are no tuple. */
static PyObject *edges_of(PyObject *node) {
  PyObject *edges = SLOT(node, core.edges);
  return edges && PyTuple_CheckExact(edges) ? Py_NewRef(edges) : NULL;
}

/* Whether hooks could see when this leaf is written. It refers weakly to its AccumulateGrad unless that has any. */
static int is_watched(PyObject *leaf) {
  PyObject *const names[] = {core.name_hooks, core.name_post_accumulate_hooks, core.name_accumulator};
  for (int i = 0; i < 3; i++) {
    PyObject *value = PyObject_GetAttr(leaf, names[i]);
    if (!value) return FAIL;
    int found = value == Py_None ? 0 : i == 2 ? !PyWeakref_Check(value) : PyObject_IsTrue(value);
    Py_DECREF(value);
    if (found) return found;
  }
  return 0;
}

/* Whether it can be seen when a gradient is added to this leaf's `.grad`: something else holds it, perhaps a node that
   saved it, or the addition may be refused. */
static int shows_when_written(PyObject *leaf) {
  if (SLOT(leaf, core.edge) != core.leaf) return 1;
  PyObject *present = PyObject_GetAttr(leaf, core.name_grad);
  if (!present) return FAIL;
  int shows = 0;
  if (present != Py_None) {
    PyObject *data = PyType_IsSubtype(Py_TYPE(present), core.tensor_state) ? SLOT(present, core.data) : NULL;
    PyObject *storage = data ? SLOT(present, core.storage_slot) : NULL;
    shows = !storage || Py_REFCNT(present) > 2 || Py_REFCNT(data) > 1 || (storage != Py_None && Py_TYPE(storage) != core.storage);
  }
  Py_DECREF(present);
  return shows;
}

/* Add a node or leaf if it is new; its number, DECLINE or FAIL. */
static int reach(struct backward_pass *pass, PyObject *edge) {
  PyObject *key = key_of(edge);
  if (!key) return DECLINE;
  if (pass->count == pass->room && grow(pass) < 0) return FAIL;
  int *place = place_of(pass, key);
  if (*place >= 0) return *place;
  struct entry made = {.key = key, .wanted = 1, .runs = 1};
  made.plan = plan_of_class(Py_TYPE(key));
  if (made.plan || PyType_IsSubtype(Py_TYPE(key), core.node)) {
    if (SLOT(key, core.extra) != Py_None) return DECLINE;
    PyObject *sequence = SLOT(key, core.sequence);
    if (!sequence || !PyLong_CheckExact(sequence)) return DECLINE;
    made.sequence = PyLong_AsLongLong(sequence);
    if (made.sequence == -1 && PyErr_Occurred()) return FAIL;
    Py_INCREF(key);
  } else if (PyType_IsSubtype(Py_TYPE(key), core.tensor_state)) {
    Py_INCREF(key);
    int watched = is_watched(key); /* Python code may run: the edge may be gone afterwards, the table stays as it is */
    if (watched) {
      Py_DECREF(key);
      return watched < 0 ? FAIL : DECLINE;
    }
    int shows = shows_when_written(key);
    if (shows < 0) {
      Py_DECREF(key);
      return FAIL;
    }
    pass->counted |= shows;
    made.leaf = 1;
  } else {
    return DECLINE;
  }
  *place = pass->count;
  pass->entries[pass->count] = made;
  return pass->count++;
}

static int later_first(const void *a, const void *b) {
  const long long *x = a, *y = b;
  return (*x < *y) - (*x > *y);
}

static int sort(struct backward_pass *pass) {
  int sorted = 1;
  for (int i = 1; i < pass->nodes && sorted; i++)
    sorted = pass->entries[pass->order[i - 1]].sequence >= pass->entries[pass->order[i]].sequence;
  if (sorted) return 0;
  long long(*pairs)[2] = PyMem_Malloc(((size_t)pass->nodes + 1) * sizeof *pairs);
  if (!pairs) {
    PyErr_NoMemory();
    return FAIL;
  }
  for (int i = 0; i < pass->nodes; i++) pairs[i][0] = pass->entries[pass->order[i]].sequence, pairs[i][1] = pass->order[i];
  qsort(pairs, (size_t)pass->nodes, sizeof *pairs, later_first);
  for (int i = 0; i < pass->nodes; i++) pass->order[i] = (int)pairs[i][1];
  PyMem_Free(pairs);
  return 0;
}

/* Nodes that were reached and whose edges were not looked at yet. */
struct stack {
  int *at, depth, room;
};

/* Reach the end of an edge, and put it on the stack if it is a new node, made at `since` or later. */
static int follow(struct backward_pass *pass, struct stack *stack, PyObject *edge, long long since) {
  if (edge == Py_None) return 0;
  int before = pass->count, at = reach(pass, edge);
  if (at < 0) return at;
  if (pass->count == before || pass->entries[at].leaf || pass->entries[at].sequence < since) return 0;
  if (stack->depth == stack->room) {
    const int room = stack->room ? 2 * stack->room : 128; /* no more than entries, which `grow` has counted */
    int *larger = PyMem_Realloc(stack->at, (size_t)room * sizeof *larger);
    if (!larger) {
      PyErr_NoMemory();
      return FAIL;
    }
    stack->at = larger;
    stack->room = room;
  }
  stack->at[stack->depth++] = at;
  return 0;
}

/* Reach all nodes from the roots, depth first. */
static int collect(struct backward_pass *pass, PyObject *roots) {
  struct stack stack = {0};
  int result = 0;
  for (Py_ssize_t r = 0; !result && r < PyTuple_GET_SIZE(roots); r++) result = follow(pass, &stack, PyTuple_GET_ITEM(roots, r), LLONG_MIN);
  while (!result && stack.depth) {
    int at = stack.at[--stack.depth];
    pass->order[pass->nodes++] = at;
    PyObject *edges = edges_of(pass->entries[at].key);
    if (!edges) result = DECLINE;
    for (Py_ssize_t e = 0; !result && e < PyTuple_GET_SIZE(edges); e++)
      result = follow(pass, &stack, PyTuple_GET_ITEM(edges, e), pass->since);
    Py_XDECREF(edges);
  }
  PyMem_Free(stack.at);
  return result ? result : sort(pass);
}

/* --- inputs ------------------------------------------------------------------------------------------------------- */

/* What is at the end of an edge; NULL if that was not reached. */
static struct entry *end_of(const struct backward_pass *pass, PyObject *edge) {
  PyObject *key = key_of(edge);
  int at = key ? *place_of(pass, key) : -1;
  return at < 0 ? NULL : &pass->entries[at];
}

/* Whether the gradient of an edge is computed: the edge leads to an input, if inputs are given. */
static int is_wanted(const struct backward_pass *pass, PyObject *edge) {
  if (edge == Py_None || !pass->inputs) return edge != Py_None;
  struct entry *end = end_of(pass, edge);
  return end && end->wanted;
}

/* Leave out what leads to no input. */
static int limit_to_inputs(struct backward_pass *pass) {
  for (int i = 0; i < pass->count; i++) pass->entries[i].wanted = pass->entries[i].runs = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pass->inputs); i++) {
    struct entry *end = end_of(pass, PyTuple_GET_ITEM(pass->inputs, i));
    if (end) end->input = end->wanted = 1, end->runs = pass->accumulate_grad; /* as in PyTorch such a node runs */
  }
  for (int i = pass->nodes - 1; i >= 0; i--) { /* an edge leads to what was made before */
    struct entry *node = &pass->entries[pass->order[i]];
    PyObject *edges = edges_of(node->key);
    if (!edges) return DECLINE;
    for (Py_ssize_t e = 0; e < PyTuple_GET_SIZE(edges); e++)
      if (is_wanted(pass, PyTuple_GET_ITEM(edges, e))) node->wanted = node->runs = 1;
    Py_DECREF(edges);
  }
  return 0;
}

/* A node whose edges were taken away meanwhile: an exception, as for what Python reads. */
static int without_edges(PyObject *node) {
  PyErr_Format(PyExc_TypeError, "the edges of %.100s must be a tuple with one for each gradient", Py_TYPE(node)->tp_name);
  return FAIL;
}

/* The edges of a node with None for those that are not wanted, a new reference; NULL with an exception. */
static PyObject *wanted_edges(const struct backward_pass *pass, PyObject *node) {
  PyObject *edges = edges_of(node);
  if (!edges) without_edges(node);
  if (!edges || !pass->inputs) return edges;
  const Py_ssize_t count = PyTuple_GET_SIZE(edges);
  PyObject *wanted = PyTuple_New(count);
  for (Py_ssize_t e = 0; wanted && e < count; e++) {
    PyObject *edge = PyTuple_GET_ITEM(edges, e);
    PyTuple_SET_ITEM(wanted, e, Py_NewRef(is_wanted(pass, edge) ? edge : Py_None));
  }
  Py_DECREF(edges);
  return wanted;
}

/* --- gradients on their way --------------------------------------------------------------------------------------- */

/* The place of a gradient in the list of a node of several outputs; -1 with an exception. */
static Py_ssize_t output_number(PyObject *edge, PyObject *list) {
  PyObject *number = SLOT(edge, core.output_number);
  Py_ssize_t found = number && PyLong_CheckExact(number) ? PyLong_AsSsize_t(number) : -1;
  if (PyErr_Occurred()) PyErr_Clear();
  if (PyList_CheckExact(list) && found >= 0 && found < PyList_GET_SIZE(list)) return found;
  PyErr_Format(PyExc_RuntimeError, "an edge leads to an output that its node does not have: number %R", number ? number : Py_None);
  return -1;
}

/* A list with a place for the gradient of each output. */
static PyObject *list_for_outputs(PyObject *node) {
  PyObject *outputs = PyObject_GetAttr(node, core.name_outputs);
  Py_ssize_t count = outputs ? PyLong_AsSsize_t(outputs) : -1;
  Py_XDECREF(outputs);
  if (count < 0 && !PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "a node must have outputs");
  PyObject *made = count < 0 ? NULL : PyList_New(count);
  for (Py_ssize_t i = 0; made && i < count; i++) PyList_SET_ITEM(made, i, Py_NewRef(Py_None));
  return made;
}

/* Add to what has arrived at the end of an edge; takes the reference over. */
static int propagate(struct backward_pass *pass, PyObject *edge, PyObject *grad) {
  const int several = Py_TYPE(edge) == core.output;
  struct entry *entry = end_of(pass, edge);
  if (!entry) {
    Py_DECREF(grad);
    return 0;
  }
  if (!several) {
    entry->unseen |= entry->grad != NULL;
    entry->grad = entry->grad ? sum_of_two(entry->grad, grad) : Py_NewRef(grad);
    Py_DECREF(grad);
    return entry->grad ? 0 : FAIL;
  }
  if (!entry->grad && !(entry->grad = list_for_outputs(entry->key))) {
    Py_DECREF(grad);
    return FAIL;
  }
  Py_ssize_t number = output_number(edge, entry->grad);
  if (number < 0) {
    Py_DECREF(grad);
    return FAIL;
  }
  PyObject *present = PyList_GET_ITEM(entry->grad, number);
  if (present != Py_None) {
    Py_INCREF(present); /* Python code that runs here may find the list and change it */
    PyObject *total = PyNumber_Add(present, grad);
    Py_DECREF(present);
    Py_DECREF(grad);
    if (!total) return FAIL;
    grad = total;
  }
  return PyList_SetItem(entry->grad, number, grad);
}

/* Tell that a node has run. */
static int tell_ran(const struct backward_pass *pass, PyObject *node, PyObject *grad, PyObject *grads, PyObject *retain_graph) {
  if (!pass->observed) return 0;
  static PyObject *name;
  if (!name) name = PyUnicode_InternFromString("ran");
  PyObject *args[] = {pass->observed, node, grad ? grad : Py_None, grads, retain_graph == Py_False ? Py_True : Py_False};
  PyObject *done = name ? PyObject_VectorcallMethod(name, args, 5 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL) : NULL;
  Py_XDECREF(done);
  return done ? 0 : FAIL;
}

/* The same of gradients that are not in a sequence yet. */
static int tell_found(const struct backward_pass *pass, PyObject *node, PyObject *grad, PyObject **found, int count,
                      PyObject *retain_graph) {
  if (!pass->observed) return 0;
  PyObject *grads = PyTuple_New(count);
  if (!grads) return FAIL;
  for (int e = 0; e < count; e++) PyTuple_SET_ITEM(grads, e, Py_NewRef(found[e] ? found[e] : Py_None));
  int result = tell_ran(pass, node, grad, grads, retain_graph);
  Py_DECREF(grads);
  return result;
}

/* An array like one whose numbers were overwritten, as it was before. */
static PyObject *as_before(PyObject *array, const void *numbers) {
  PyArrayObject *before = empty_like((PyArrayObject *)array);
  if (before) memcpy(PyArray_DATA(before), numbers, PyArray_NBYTES(before));
  return (PyObject *)before;
}

/* Look for nonfinite_kinds in a node's gradients; what it saved is still there. `arrived`: the numbers of `grad` if the node
   has overwritten them, else NULL. */
static int check_gradients(struct backward_pass *pass, int at, PyObject *grad, const void *arrived, PyObject *const *found, Py_ssize_t count) {
  PyObject *node = pass->entries[at].key, *seen = pass->entries[at].unseen || arrived ? NULL : grad;
  int odd = 0;
  for (Py_ssize_t e = 0; e < count; e++) {
    if (!found[e] || found[e] == Py_None || found[e] == seen) continue;
    odd |= nonfinite_in(found[e]);
    seen = found[e] == grad ? grad : seen;
  }
  if (!odd) return 0;
  PyObject *before = arrived ? as_before(grad, arrived) : Py_NewRef(grad ? grad : Py_None);
  if (!before) return FAIL;
  int result = 0;
  if (odd & pass->odd) {
    PyObject *grads = PyTuple_New(count), *done = NULL;
    for (Py_ssize_t e = 0; e < count && grads; e++) PyTuple_SET_ITEM(grads, e, Py_NewRef(found[e] ? found[e] : Py_None));
    PyObject *first = pass->first_infinite ? pass->first_infinite : Py_None;
    if (grads) done = PyObject_CallFunctionObjArgs(core.nonfinite_node, pass->roots, node, before, grads, first, NULL);
    if (!done) result = FAIL;
    Py_XDECREF(grads);
    Py_XDECREF(done);
  } else if (!pass->first_infinite && !nonfinite_in(before)) {
    pass->first_infinite = node;
  }
  Py_DECREF(before);
  return result;
}

/* What a node's backward returned, as a tuple: a list might be changed while its gradients are propagated. */
static PyObject *as_tuple(PyObject *found) {
  if (!found || PyTuple_CheckExact(found)) return Py_XNewRef(found);
  PyObject *listed = PySequence_Fast(found, "a node's backward must return a sequence of gradients");
  PyObject *tuple = listed ? PySequence_Tuple(listed) : NULL;
  Py_XDECREF(listed);
  return tuple;
}

/* Run a node in Python and propagate its gradients. In anomaly mode it keeps what it saved until they are looked at. */
static int run_in_python(struct backward_pass *pass, int at, PyObject *grad, PyObject *retain_graph) {
  PyObject *node = pass->entries[at].key, *edges = wanted_edges(pass, node);
  if (!edges) return FAIL;
  PyObject *args[] = {node, grad ? grad : Py_None, edges, pass->odd ? Py_True : retain_graph};
  PyObject *found = PyObject_VectorcallMethod(core.name_backward, args, 4 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
  PyObject *grads = as_tuple(found);
  int result = grads ? 0 : FAIL;
  if (grads && pass->odd) {
    result = check_gradients(pass, at, grad, NULL, PySequence_Fast_ITEMS(grads), PyTuple_GET_SIZE(grads));
    if (!result && retain_graph == Py_False) {
      PyObject *freed = PyObject_CallMethodNoArgs(node, core.name_free);
      Py_XDECREF(freed);
      if (!freed) result = FAIL;
    }
  }
  if (!result) result = tell_ran(pass, node, grad, grads, retain_graph);
  if (grads && !result) {
    Py_ssize_t count = PyTuple_GET_SIZE(grads);
    if (count > PyTuple_GET_SIZE(edges)) count = PyTuple_GET_SIZE(edges);
    for (Py_ssize_t e = 0; e < count && !result; e++) {
      PyObject *edge = PyTuple_GET_ITEM(edges, e), *one = PyTuple_GET_ITEM(grads, e);
      if (edge != Py_None && one != Py_None) result = propagate(pass, edge, Py_NewRef(one));
    }
  }
  Py_XDECREF(grads);
  Py_XDECREF(found);
  Py_DECREF(edges);
  return result;
}

/* Whether to keep a copy of a gradient that may be overwritten is cheaper than to let the node make another array. */
static int is_small(PyObject *grad) {
  PyArrayObject *array = (PyArrayObject *)grad;
  return Py_TYPE(grad) == &PyArray_Type && PyArray_IS_C_CONTIGUOUS(array) && PyArray_NBYTES(array) <= KEPT_BYTES;
}

/* Whether a gradient's numbers were overwritten by one that a node returned. */
static int overwritten(const struct plan *plan, PyObject *grad, PyObject *const *found) {
  for (int e = 0; e < plan->differentiable; e++)
    if (found[e] == grad) return !plan->derivative[e].passes;
  return 0;
}

/* Run a node by its plan: 1, 0 where it declined, FAIL. */
static int run_by_plan(struct backward_pass *pass, int at, PyObject **arrived_grad, PyObject *retain_graph) {
  PyObject *node = pass->entries[at].key, *grad = *arrived_grad, *found[MOST_INPUTS], *edges = edges_of(node);
  struct plan *plan = pass->entries[at].plan;
  if (!edges || PyTuple_GET_SIZE(edges) != plan->differentiable) {
    Py_XDECREF(edges);
    return without_edges(node);
  }
  unsigned wanted = 0;
  for (int e = 0; e < plan->differentiable; e++)
    if (is_wanted(pass, PyTuple_GET_ITEM(edges, e))) wanted |= 1u << e;
  char arrived[KEPT_BYTES];
  const int copied = pass->odd && !pass->observed && is_small(grad), seen = (pass->observed || pass->odd) && !copied;
  if (copied) memcpy(arrived, PyArray_DATA((PyArrayObject *)grad), PyArray_NBYTES((PyArrayObject *)grad));
  if (seen) Py_INCREF(grad); /* so that it is not overwritten */
  int result = plan_run(plan, node, grad, wanted, found);
  if (result > 0) {
    const void *lost = copied && overwritten(plan, grad, found) ? arrived : NULL;
    result = pass->odd ? check_gradients(pass, at, grad, lost, found, plan->differentiable) : 0;
    if (retain_graph == Py_False && !result) plan_free(plan, node);
    if (!result) result = tell_found(pass, node, grad, found, plan->differentiable, retain_graph);
    Py_CLEAR(*arrived_grad); /* before its sum, which may then be written over it */
    if (seen) Py_DECREF(grad);
    for (int e = 0; e < plan->differentiable; e++) {
      if (result < 0)
        Py_XDECREF(found[e]);
      else if (found[e] && propagate(pass, PyTuple_GET_ITEM(edges, e), found[e]) < 0)
        result = FAIL;
    }
    Py_DECREF(edges);
    return result < 0 ? result : 1;
  }
  if (seen) Py_DECREF(grad);
  Py_DECREF(edges);
  return result;
}

static int run_node(struct backward_pass *pass, int at, PyObject *retain_graph) {
  PyObject *node = pass->entries[at].key, *grad = pass->entries[at].grad;
  struct plan *plan = pass->entries[at].plan;
  pass->entries[at].grad = NULL;
  if (pass->entries[at].input && !pass->accumulate_grad) pass->entries[at].captured = Py_XNewRef(grad);
  if (!pass->entries[at].runs) {
    Py_XDECREF(grad);
    return 0;
  }
  if (!grad) {
    if (plan) return 0;
    PyObject *wants = PyObject_GetAttr(node, core.name_wants_undefined);
    int runs = wants ? PyObject_IsTrue(wants) : FAIL;
    Py_XDECREF(wants);
    return runs > 0 ? run_in_python(pass, at, NULL, retain_graph) : runs;
  }
  int result = plan ? run_by_plan(pass, at, &grad, retain_graph) : 0;
  if (!result) result = run_in_python(pass, at, grad, retain_graph);
  Py_XDECREF(grad);
  return result < 0 ? result : 0;
}

/* --- leaves ------------------------------------------------------------------------------------------------------- */

static int same_kind(PyObject *a, PyObject *b) {
  if (Py_TYPE(a) == &PyArray_Type && Py_TYPE(b) == &PyArray_Type)
    return PyArray_DESCR((PyArrayObject *)a) == PyArray_DESCR((PyArrayObject *)b);
  return Py_TYPE(a) == Py_TYPE(b);
}

/* Write what arrived at a leaf into its `.grad`: stolen if only the pass holds it, else copied or added by Python. */
static int write_leaf(struct entry *entry, PyObject *grad, int steal);

static int finish_leaf(const struct backward_pass *pass, struct entry *entry) {
  if (pass->inputs && !(entry->input && pass->accumulate_grad)) return 0; /* it is captured at the end, or not wanted */
  PyObject *grad = entry->grad;
  entry->grad = NULL;
  if (!grad) return 0;
  if (SLOT(entry->key, core.edge) == Py_None) {
    Py_DECREF(grad);
    return 0;
  }
  PyArrayObject *array = (PyArrayObject *)grad;
  const int steal = Py_TYPE(grad) == &PyArray_Type && Py_REFCNT(grad) == 1 && !PyArray_BASE(array) && PyArray_IS_C_CONTIGUOUS(array);
  if (!pass->observed) return write_leaf(entry, grad, steal);
  PyObject *before = PyObject_CallMethod(pass->observed, "grad_of", "O", entry->key);
  if (!before) {
    Py_DECREF(grad);
    return FAIL;
  }
  Py_INCREF(grad);
  int result = write_leaf(entry, grad, steal);
  PyObject *done = result < 0 ? NULL : PyObject_CallMethod(pass->observed, "leaf_written", "OOO", entry->key, grad, before);
  Py_XDECREF(done);
  Py_DECREF(grad);
  Py_DECREF(before);
  return done ? 0 : FAIL;
}

/* Let Python add a gradient to `.grad`, which it does one thread at a time. */
static int add_in_python(PyObject *leaf, PyObject *grad, int steal) {
  static PyObject *names;
  if (!names) names = Py_BuildValue("(s)", "steal");
  PyObject *args[] = {leaf, grad, Py_False, steal ? Py_True : Py_False};
  PyObject *done = names ? PyObject_Vectorcall(core.add_to_grad, args, 3, names) : NULL;
  Py_XDECREF(done);
  return done ? 0 : FAIL;
}

/* Write a gradient, whose reference is taken over, into `.grad`. */
static int write_leaf(struct entry *entry, PyObject *grad, int steal) {
  PyObject *leaf = entry->key;
  PyArrayObject *array = (PyArrayObject *)grad;
  const int is_array = Py_TYPE(grad) == &PyArray_Type;
  const int is_leaf = SLOT(leaf, core.edge) == core.leaf;
  PyObject *present = PyObject_GetAttr(leaf, core.name_grad);
  if (!present) {
    Py_DECREF(grad);
    return FAIL;
  }
  int result;
  PyObject *own_data = SLOT(leaf, core.data);
  const int in_rows = !own_data || Py_TYPE(own_data) != &PyArray_Type || is_row_major((PyArrayObject *)own_data);
  if (present == Py_None && is_leaf && own_data && in_rows && same_kind(grad, own_data)) {
    PyObject *own = !is_array || steal ? Py_NewRef(grad) : (PyObject *)PyArray_NewCopy(array, NPY_CORDER);
    PyObject *tensor = own ? new_tensor(own) : NULL;
    if (core.mark && tensor && mark(tensor) < 0) Py_CLEAR(tensor);
    Py_DECREF(present);
    present = tensor ? PyObject_GetAttr(leaf, core.name_grad) : NULL; /* another thread may have run while NumPy copied */
    if (present == Py_None)
      result = PyObject_SetAttr(leaf, core.name_grad, tensor);
    else
      result = present ? add_in_python(leaf, grad, 0) : FAIL;
    Py_XDECREF(tensor);
  } else {
    result = add_in_python(leaf, grad, steal);
  }
  Py_XDECREF(present);
  Py_DECREF(grad);
  return result;
}

/* --- the pass ---------------------------------------------------------------------------------------------------- */

static void say_where(PyObject *node) {
  PyObject *problem = take_raised();
  if (!problem) return;
  PyObject *said = PyObject_CallFunctionObjArgs(core.say_where, problem, node, NULL);
  if (said)
    raise_again(problem);
  else
    Py_DECREF(problem);
  Py_XDECREF(said);
}

/* Count the end of an edge up or down; where it is a leaf that now has all its gradients, write it. */
static int count_delivery(struct backward_pass *pass, PyObject *edge, int change) {
  struct entry *end = is_wanted(pass, edge) ? end_of(pass, edge) : NULL;
  if (!end || !end->leaf) return 0;
  end->pending += change;
  return change < 0 && !end->pending ? finish_leaf(pass, end) : 0;
}

static int count_deliveries(struct backward_pass *pass, int node, int change) {
  if (!pass->entries[node].runs) return 0;
  PyObject *edges = edges_of(pass->entries[node].key);
  if (!edges) return without_edges(pass->entries[node].key);
  int result = 0;
  for (Py_ssize_t e = 0; !result && e < PyTuple_GET_SIZE(edges); e++) result = count_delivery(pass, PyTuple_GET_ITEM(edges, e), change);
  Py_DECREF(edges);
  return result;
}

/* Write the leaves that had all their gradients when a node failed: those to which no node from it on leads. */
static void leave(struct backward_pass *pass, int failed) {
  PyObject *problem = take_raised();
  for (int i = failed; i < pass->nodes; i++)
    if (count_deliveries(pass, pass->order[i], 1) < 0) PyErr_Clear();
  for (int i = 0; i < pass->count; i++)
    if (pass->entries[i].leaf && !pass->entries[i].pending && finish_leaf(pass, &pass->entries[i]) < 0) PyErr_Clear();
  raise_again(problem);
}

static int run_pass(struct backward_pass *pass, PyObject *roots, PyObject *grads, PyObject *retain_graph) {
  int result = collect(pass, roots);
  if (!result && pass->inputs) result = limit_to_inputs(pass);
  if (result < 0) return result;
  if (pass->counted) {
    for (Py_ssize_t r = 0; r < PyTuple_GET_SIZE(roots); r++) count_delivery(pass, PyTuple_GET_ITEM(roots, r), 1);
    for (int i = 0; i < pass->nodes; i++)
      if (count_deliveries(pass, pass->order[i], 1) < 0) return FAIL;
  }
  for (Py_ssize_t r = 0; r < PyTuple_GET_SIZE(roots); r++) {
    PyObject *root = PyTuple_GET_ITEM(roots, r);
    struct entry *end = end_of(pass, root);
    if (!end) continue;
    if (propagate(pass, root, Py_NewRef(PyTuple_GET_ITEM(grads, r))) < 0) return FAIL;
    end->unseen = 1;
    if (pass->counted && count_delivery(pass, root, -1) < 0) return FAIL;
  }
  for (int i = 0; i < pass->nodes; i++) {
    if (run_node(pass, pass->order[i], retain_graph) < 0) {
      say_where(pass->entries[pass->order[i]].key);
      if (!pass->observed) leave(pass, i);
      return FAIL;
    }
    if (pass->counted && count_deliveries(pass, pass->order[i], -1) < 0) return FAIL;
  }
  for (int i = 0; i < pass->count; i++)
    if (pass->entries[i].leaf && finish_leaf(pass, &pass->entries[i]) < 0) return FAIL;
  return 0;
}

/* What arrived at each input, None where nothing did; empty if no gradients are captured. */
static PyObject *captured_gradients(const struct backward_pass *pass) {
  if (!pass->inputs || pass->accumulate_grad) return PyList_New(0);
  const Py_ssize_t count = PyTuple_GET_SIZE(pass->inputs);
  PyObject *found = PyList_New(count);
  for (Py_ssize_t i = 0; found && i < count; i++) {
    PyObject *input = PyTuple_GET_ITEM(pass->inputs, i);
    struct entry *end = end_of(pass, input);
    PyObject *grad = !end ? NULL : end->leaf ? end->grad : end->captured;
    if (grad && Py_TYPE(input) == core.output) {
      Py_ssize_t number = output_number(input, grad);
      if (number < 0) {
        Py_DECREF(found);
        return NULL;
      }
      grad = PyList_GET_ITEM(grad, number);
    }
    PyList_SET_ITEM(found, i, Py_NewRef(grad ? grad : Py_None));
  }
  return found;
}

/* Run from roots, which are lists; they are copied, for Python code may change them. Returns the captured gradients, or
   Py_None if Python must run the pass. */
static PyObject *run_from(struct backward_pass *pass, PyObject *roots, PyObject *grads, PyObject *retain_graph) {
  PyObject *starts = PyList_AsTuple(roots), *given = starts ? PyList_AsTuple(grads) : NULL, *found = NULL;
  if (given && PyTuple_GET_SIZE(starts) != PyTuple_GET_SIZE(given)) {
    PyErr_SetString(PyExc_TypeError, "a backward pass takes as many gradients as edges");
  } else if (given && grow(pass) == 0) {
    int result = run_pass(pass, starts, given, retain_graph);
    found = result == FAIL ? NULL : result == DECLINE ? Py_NewRef(Py_None) : captured_gradients(pass);
  }
  Py_XDECREF(starts);
  Py_XDECREF(given);
  return found;
}

/* core_backward_pass(roots, gradients, retain_graph, observed or None, nonfinite_kinds to look for or None, inputs or None, accumulate_grad, since):
   the captured gradients, or None if Python must run the pass. */
PyObject *core_backward_pass(PyObject *self, PyObject *const *args, Py_ssize_t count) {
  (void)self;
  if (!core.ready) return PyErr_Format(PyExc_RuntimeError, "the core must be set up before a backward pass");
  if (count != 8 || !PyList_CheckExact(args[0]) || !PyList_CheckExact(args[1]) || !(args[5] == Py_None || PyList_CheckExact(args[5]))) {
    PyErr_SetString(PyExc_TypeError,
                    "a backward pass takes lists of edges and as many gradients, whether to keep the graph, who observes, "
                    "nonfinite_kinds, a list of inputs or None, whether to write their gradients, the first sequence number");
    return NULL;
  }
  struct backward_pass pass = {.observed = args[3] == Py_None ? NULL : args[3], .roots = args[0]};
  const long odd = args[4] == Py_None ? 0 : PyLong_AsLong(args[4]);
  pass.since = odd == -1 && PyErr_Occurred() ? -1 : PyLong_AsLongLong(args[7]);
  if (PyErr_Occurred()) return NULL;
  pass.odd = (int)(odd & (FOUND_NAN | FOUND_INF));
  pass.counted = pass.observed || args[4] != Py_None;
  pass.accumulate_grad = args[6] == Py_True;
  if (args[5] != Py_None && !(pass.inputs = PyList_AsTuple(args[5]))) return NULL;
  PyObject *found = run_from(&pass, args[0], args[1], args[2]);
  for (int i = 0; i < pass.count; i++) {
    Py_XDECREF(pass.entries[i].grad);
    Py_XDECREF(pass.entries[i].captured);
    Py_DECREF(pass.entries[i].key);
  }
  Py_XDECREF(pass.inputs);
  PyMem_Free(pass.entries);
  PyMem_Free(pass.places);
  PyMem_Free(pass.order);
  return found;
}
