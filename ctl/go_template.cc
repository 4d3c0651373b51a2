// SPDX-License-Identifier: Apache-2.0
// Executes a template. The functions are named after those of Go's text/template/exec.go; `node_` is the node that a message is
// about, and is set where Go sets it. See go_template.h.
#include "ctl/go_template.h"

#include <algorithm>
#include <span>
#include <utility>

#include "ctl/go_format.h"
#include "ctl/go_text.h"
#include "ctl/template_functions.h"

namespace coracle::ctl {
namespace {

using NodeKind = TemplateNode::Kind;
using NodePointer = TemplateNode::Pointer;
using Operands = std::span<const NodePointer>;

constexpr const char* kMainName = "output";  // kubectl's name for it
constexpr size_t kBytesPerStep = 64;

bool is_missing(const GoValue& value) { return value.is_nothing() && !value.boxed(); }

class TemplateRun {
 public:
  TemplateRun(const ParsedTemplate& parsed, bool missing_key_is_error, std::string& out, const TemplateLimits& limits)
      : parsed_(parsed), missing_key_is_error_(missing_key_is_error), limits_(limits), out_(out), begin_(out.size()) {}

  Result<void> run(const json::value& data) {
    GoValue dot = GoValue::of_json(data, false);
    name_ = parsed_.name;
    variables_.push_back({"$", dot});
    return walk(dot, *parsed_.trees.at(parsed_.name));
  }

 private:
  struct Variable {
    std::string_view name;
    GoValue value;
  };
  enum class Flow : uint8_t { onward, break_, continue_ };
  struct Depth {  // counts while it lives
    explicit Depth(int& depth) : depth(depth) { ++depth; }
    ~Depth() { --depth; }
    Depth(const Depth&) = delete;
    int& depth;
  };

  Error wrong(const std::string& text, Code code = Code::invalid) const;
  Result<void> step(size_t bytes = 0);
  Result<void> write(std::string_view text);

  Result<void> walk(const GoValue& dot, const TemplateNode& node);
  Result<void> walk_if_or_with(const GoValue& dot, const TemplateNode& node);
  Result<void> walk_range(const GoValue& dot, const TemplateNode& node);
  Result<void> walk_once(const TemplateNode& range, const GoValue& index, const GoValue& element, size_t mark);
  Result<void> walk_template(const GoValue& dot, const TemplateNode& node);

  Result<GoValue> eval_pipeline(const GoValue& dot, const TemplateNode& pipe);
  Result<GoValue> eval_command(const GoValue& dot, const TemplateNode& command, const GoValue* final_value);
  Result<GoValue> eval_operand(const GoValue& dot, const TemplateNode& node, Operands operands, const GoValue* final_value);
  Result<GoValue> eval_constant(const GoValue& dot, const TemplateNode& node);
  Result<GoValue> eval_chain(const GoValue& dot, const TemplateNode& node, Operands operands, const GoValue* final_value);
  Result<GoValue> eval_variable(const TemplateNode& node, Operands operands, const GoValue* final_value);
  Result<GoValue> eval_fields(GoValue receiver, std::span<const std::string> names, Operands operands,
                              const GoValue* final_value);
  Result<GoValue> eval_field(const GoValue& receiver, const std::string& name, bool has_arguments);
  Result<GoValue> eval_function(const GoValue& dot, const TemplateNode& node, const TemplateNode& command, Operands operands,
                                const GoValue* final_value);
  Result<GoValue> eval_logic(const GoValue& dot, bool is_or, Operands arguments, const GoValue* final_value);
  Result<GoValue> eval_argument(const GoValue& dot, const TemplateParameter* parameter, const TemplateNode& node);
  Result<GoValue> validated(GoValue value, TemplateParameter parameter);
  Result<void> not_a_function(Operands operands, const GoValue* final_value);

  Result<GoValue*> variable(std::string_view name);

  const ParsedTemplate& parsed_;
  bool missing_key_is_error_;
  const TemplateLimits& limits_;
  std::string& out_;
  size_t begin_;           // of our part of the output
  std::string_view name_;  // of the template that runs
  const TemplateNode* node_ = nullptr;
  std::vector<Variable> variables_;
  Flow flow_ = Flow::onward;
  int depth_ = 0;
  size_t steps_ = 0;
};

Error TemplateRun::wrong(const std::string& text, Code code) const {
  std::string_view before = std::string_view(parsed_.text).substr(0, node_ ? node_->at : 0);
  size_t line_break = before.rfind('\n');
  size_t column = line_break == before.npos ? before.size() : before.size() - line_break - 1;
  auto line = size_t(1 + std::count(before.begin(), before.end(), '\n'));
  return Error(code, "template: " + parsed_.name + ":" + std::to_string(line) + ":" + std::to_string(column) + ": executing " +
                         go_quoted(name_) + " at <" + (node_ ? node_->shown() : "") + ">: " + text);
}

Result<void> TemplateRun::step(size_t bytes) {
  steps_ += 1 + bytes / kBytesPerStep;
  if (steps_ > limits_.steps_max) return wrong("more than " + std::to_string(limits_.steps_max) + " steps", Code::too_large);
  return {};
}

Result<void> TemplateRun::write(std::string_view text) {
  TRY(step(text.size()));
  out_ += text;
  if (out_.size() - begin_ > limits_.bytes_max)
    return wrong("the output is longer than " + std::to_string(limits_.bytes_max) + " bytes", Code::too_large);
  return {};
}

Result<GoValue*> TemplateRun::variable(std::string_view name) {
  for (auto one = variables_.rbegin(); one != variables_.rend(); ++one)
    if (one->name == name) return &one->value;
  return wrong("undefined variable: " + std::string(name));
}

// ---- nodes ----

Result<void> TemplateRun::walk(const GoValue& dot, const TemplateNode& node) {
  TRY(step());
  node_ = &node;
  switch (node.kind) {
    case NodeKind::action: {
      GoValue value = TRY(eval_pipeline(dot, *node.pipe));
      if (!node.pipe->declared.empty()) return {};
      node_ = &node;
      if (is_missing(value)) return write("<no value>");
      if (value.is_text()) return write(value.text());
      return write(go_sprint({value}, limits_.bytes_max));
    }
    case NodeKind::break_: flow_ = Flow::break_; return {};
    case NodeKind::continue_: flow_ = Flow::continue_; return {};
    case NodeKind::if_:
    case NodeKind::with: return walk_if_or_with(dot, node);
    case NodeKind::list: {
      Depth depth(depth_);
      for (const auto& child : node.children) {
        TRY(walk(dot, *child));
        if (flow_ != Flow::onward) break;
      }
      return {};
    }
    case NodeKind::range: return walk_range(dot, node);
    case NodeKind::template_: return walk_template(dot, node);
    case NodeKind::text: return write(node.text);
    default: return wrong("unknown node: " + node.shown());
  }
}

Result<void> TemplateRun::walk_if_or_with(const GoValue& dot, const TemplateNode& node) {
  size_t mark = variables_.size();
  GoValue value = TRY(eval_pipeline(dot, *node.pipe));
  if (value.truth()) TRY(walk(node.kind == NodeKind::with ? value : dot, *node.body));
  else if (node.otherwise) TRY(walk(dot, *node.otherwise));
  variables_.resize(mark);
  return {};
}

Result<void> TemplateRun::walk_once(const TemplateNode& range, const GoValue& index, const GoValue& element, size_t mark) {
  const auto& declared = range.pipe->declared;
  if (range.pipe->assigns) {
    for (size_t i = 0; i < declared.size(); ++i) {
      GoValue* place = TRY(variable(declared[i]->names.front()));
      *place = declared.size() > 1 && i == 0 ? index : element;
    }
  } else if (!declared.empty()) {
    variables_[mark - 1].value = element;
    if (declared.size() > 1) variables_[mark - 2].value = index;
  }
  TRY(walk(element, *range.body));
  variables_.resize(mark);
  if (flow_ == Flow::continue_) flow_ = Flow::onward;
  return {};
}

Result<void> TemplateRun::walk_range(const GoValue& dot, const TemplateNode& node) {
  size_t begin = variables_.size();
  GoValue value = TRY(eval_pipeline(dot, *node.pipe));
  size_t mark = variables_.size();
  bool any = false;
  auto once = [&](const GoValue& index, const GoValue& element) {
    any = true;
    return walk_once(node, index, element, mark);
  };
  if (value.kind() == GoValue::Kind::integer || value.kind() == GoValue::Kind::octet) {
    if (node.pipe->declared.size() > 1) return wrong("can't use " + go_text(value) + " to iterate over more than one variable");
    for (int64_t i = 0; i < value.integer() && flow_ == Flow::onward; ++i) TRY(once(GoValue(), value.same_type(i)));
  } else if (value.kind() == GoValue::Kind::list) {
    for (size_t i = 0; i < value.length() && flow_ == Flow::onward; ++i) TRY(once(GoValue::of_int(int64_t(i)), value.at(i)));
  } else if (value.kind() == GoValue::Kind::map) {
    for (const auto& [name, member] : value.members()) {
      if (flow_ != Flow::onward) break;
      TRY(once(GoValue::of_name(name), GoValue::of_json(*member, true)));
    }
  } else if (!value.is_nothing()) {
    return wrong("range can't iterate over " + go_sprint({value}, limits_.bytes_max));
  }
  flow_ = Flow::onward;
  if (!any && node.otherwise) TRY(walk(dot, *node.otherwise));
  variables_.resize(begin);
  return {};
}

Result<void> TemplateRun::walk_template(const GoValue& dot, const TemplateNode& node) {
  auto found = parsed_.trees.find(node.text);
  if (found == parsed_.trees.end()) return wrong("template " + go_quoted(node.text) + " not defined");
  if (depth_ > kTemplateDepthMax)
    return wrong("exceeded maximum template depth (" + std::to_string(kTemplateDepthMax) + ")", Code::too_large);
  GoValue data;
  if (node.pipe) data = TRY(eval_pipeline(dot, *node.pipe));
  auto variables = std::exchange(variables_, {{"$", data}});
  std::string_view name = std::exchange(name_, found->first);
  const TemplateNode* at = node_;
  TRY(walk(data, *found->second));
  variables_ = std::move(variables);
  name_ = name;
  node_ = at;
  return {};
}

// ---- expressions ----

Result<GoValue> TemplateRun::eval_pipeline(const GoValue& dot, const TemplateNode& pipe) {
  node_ = &pipe;
  GoValue value;
  bool given = false;
  for (const auto& command : pipe.children) {
    GoValue next = TRY(eval_command(dot, *command, given ? &value : nullptr));
    value = std::move(next).unboxed();
    given = true;
  }
  for (const auto& declared : pipe.declared) {
    if (pipe.assigns) {
      GoValue* place = TRY(variable(declared->names.front()));
      *place = value;
    } else {
      variables_.push_back({declared->names.front(), value});
    }
  }
  return value;
}

Result<void> TemplateRun::not_a_function(Operands operands, const GoValue* final_value) {
  if (operands.size() <= 1 && !final_value) return {};
  return wrong("can't give argument to non-function " + (operands.empty() ? std::string() : operands.front()->shown()));
}

Result<GoValue> TemplateRun::eval_command(const GoValue& dot, const TemplateNode& command, const GoValue* final_value) {
  TRY(step());
  const TemplateNode& first = *command.children.front();
  switch (first.kind) {
    case NodeKind::field:
    case NodeKind::chain:
    case NodeKind::variable: return eval_operand(dot, first, command.children, final_value);
    case NodeKind::identifier: return eval_function(dot, first, command, command.children, final_value);
    case NodeKind::pipe: TRY(not_a_function(command.children, final_value)); return eval_pipeline(dot, first);
    default: break;
  }
  node_ = &first;
  TRY(not_a_function(command.children, final_value));
  if (first.kind == NodeKind::nil) return wrong("nil is not a command");
  return eval_constant(dot, first);
}

Result<GoValue> TemplateRun::eval_operand(const GoValue& dot, const TemplateNode& node, Operands operands,
                                          const GoValue* final_value) {
  if (node.kind == NodeKind::chain) return eval_chain(dot, node, operands, final_value);
  if (node.kind == NodeKind::variable) return eval_variable(node, operands, final_value);
  node_ = &node;
  return eval_fields(dot, node.names, operands, final_value);
}

Result<GoValue> TemplateRun::eval_constant(const GoValue& dot, const TemplateNode& node) {
  node_ = &node;
  switch (node.kind) {
    case NodeKind::boolean: return GoValue::of_bool(node.flag);
    case NodeKind::dot: return dot;
    case NodeKind::string: return GoValue::of_name(node.value);
    case NodeKind::number:
      if (node.overflows) return wrong(node.text + " overflows int");
      return node.number;
    default: return wrong("can't evaluate command " + go_quoted(node.shown()));
  }
}

Result<GoValue> TemplateRun::eval_chain(const GoValue& dot, const TemplateNode& node, Operands operands,
                                        const GoValue* final_value) {
  node_ = &node;
  GoValue receiver = TRY(eval_argument(dot, nullptr, *node.children.front()));
  return eval_fields(std::move(receiver), node.names, operands, final_value);
}

Result<GoValue> TemplateRun::eval_variable(const TemplateNode& node, Operands operands, const GoValue* final_value) {
  node_ = &node;
  GoValue* value = TRY(variable(node.names.front()));
  if (node.names.size() == 1) {
    TRY(not_a_function(operands, final_value));
    return *value;
  }
  return eval_fields(*value, std::span(node.names).subspan(1), operands, final_value);
}

Result<GoValue> TemplateRun::eval_fields(GoValue receiver, std::span<const std::string> names, Operands operands,
                                         const GoValue* final_value) {
  for (size_t i = 0; i < names.size(); ++i) {
    bool has_arguments = i + 1 == names.size() && (operands.size() > 1 || final_value);
    GoValue field = TRY(eval_field(receiver, names[i], has_arguments));
    receiver = std::move(field);
  }
  return receiver;
}

Result<GoValue> TemplateRun::eval_field(const GoValue& receiver, const std::string& name, bool has_arguments) {
  if (is_missing(receiver)) {
    if (missing_key_is_error_) return wrong("nil data; no entry for key " + go_quoted(name));
    return GoValue();
  }
  if (receiver.is_nothing()) return wrong("nil pointer evaluating " + receiver.type() + "." + name);
  if (receiver.kind() != GoValue::Kind::map) return wrong("can't evaluate field " + name + " in type " + receiver.type());
  if (has_arguments) return wrong(name + " is not a method but has arguments");
  if (const json::value* member = receiver.member(name)) return GoValue::of_json(*member, true);
  if (missing_key_is_error_) return wrong("map has no entry for key " + go_quoted(name));
  return GoValue();
}

Result<GoValue> TemplateRun::eval_function(const GoValue& dot, const TemplateNode& node, const TemplateNode& command,
                                           Operands operands, const GoValue* final_value) {
  node_ = &node;
  const TemplateFunction* function = template_function(node.text);
  if (!function) return wrong(go_quoted(node.text) + " is not a defined function");
  Operands arguments = operands.empty() ? operands : operands.subspan(1);
  size_t count = arguments.size() + (final_value ? 1 : 0);
  if (function->variadic && count < function->fixed)
    return wrong("wrong number of args for " + node.text + ": want at least " + std::to_string(function->fixed) + " got " +
                 std::to_string(arguments.size()));
  if (!function->variadic && count != function->fixed)
    return wrong("wrong number of args for " + node.text + ": want " + std::to_string(function->fixed) + " got " +
                 std::to_string(count));
  if (node.text == "and" || node.text == "or") return eval_logic(dot, node.text == "or", arguments, final_value);
  std::vector<GoValue> values;
  values.reserve(count);
  for (size_t i = 0; i < arguments.size(); ++i) {
    TemplateParameter parameter = function->parameter(i);
    GoValue value = TRY(eval_argument(dot, &parameter, *arguments[i]));
    values.push_back(std::move(value));
  }
  std::string callee;
  if (node.text == "call") {
    if (!arguments.empty()) callee = arguments.front()->shown();
    else if (final_value->is_text()) callee = final_value->text();
    else callee = "<" + (final_value->is_nothing() ? "invalid" : final_value->concrete_type()) + " Value>";
  }
  if (final_value) {
    GoValue value = TRY(validated(*final_value, function->parameter(values.size())));
    values.push_back(std::move(value));
  }
  auto result = call_template_function(*function, std::move(values), callee, limits_.bytes_max);
  if (!result) {
    node_ = &command;
    Code code = result.error().code();
    return wrong("error calling " + node.text + ": " + result.error().text(), code);
  }
  TRY(step(result->is_text() ? result->length() : 0));
  return result;
}

Result<GoValue> TemplateRun::eval_logic(const GoValue& dot, bool is_or, Operands arguments, const GoValue* final_value) {
  GoValue value;
  for (const auto& argument : arguments) {
    TemplateParameter parameter = TemplateParameter::value;
    value = TRY(eval_argument(dot, &parameter, *argument));
    if (value.truth() == is_or) return value;
  }
  return final_value ? *final_value : value;
}

Result<GoValue> TemplateRun::eval_argument(const GoValue& dot, const TemplateParameter* parameter, const TemplateNode& node) {
  node_ = &node;
  GoValue value;
  switch (node.kind) {
    case NodeKind::dot: value = dot; break;
    case NodeKind::nil:
      if (parameter && *parameter == TemplateParameter::text) return wrong("cannot assign nil to string");
      return GoValue();
    case NodeKind::field:
    case NodeKind::variable:
    case NodeKind::chain: value = TRY(eval_operand(dot, node, {}, nullptr)); break;
    case NodeKind::pipe: value = TRY(eval_pipeline(dot, node)); break;
    case NodeKind::identifier: value = TRY(eval_function(dot, node, node, {}, nullptr)); break;
    default:
      if (parameter && *parameter == TemplateParameter::text && node.kind != NodeKind::string)
        return wrong("expected string; found " + node.shown());
      return eval_constant(dot, node);
  }
  if (!parameter) return value;
  return validated(std::move(value), *parameter);
}

Result<GoValue> TemplateRun::validated(GoValue value, TemplateParameter parameter) {
  if (parameter == TemplateParameter::value) return value;
  if (parameter == TemplateParameter::any) return std::move(value).unboxed();
  if (is_missing(value)) return wrong("invalid value; expected string");
  if (value.is_nothing()) return wrong("wrong type for value; expected string; got " + value.type());
  if (!value.is_text()) return wrong("wrong type for value; expected string; got " + value.concrete_type());
  return std::move(value).unboxed();
}

}  // namespace

Result<GoTemplate> GoTemplate::parse(std::string text) {
  ParsedTemplate parsed = TRY(parse_template(kMainName, std::move(text)));
  return GoTemplate(std::move(parsed));
}

Result<void> GoTemplate::execute(const json::value& data, bool missing_key_is_error, std::string& out,
                                 const TemplateLimits& limits) const {
  TemplateRun run(parsed_, missing_key_is_error, out, limits);
  return run.run(data);
}

}  // namespace coracle::ctl
