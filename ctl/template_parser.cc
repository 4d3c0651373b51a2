// SPDX-License-Identifier: Apache-2.0
// Parses Go templates. The functions are named after those of Go's parser, whose look-ahead they keep: the line in a message is
// that of the last token read. See template_nodes.h.
#include <algorithm>
#include <array>
#include <utility>

#include "ctl/go_text.h"
#include "ctl/template_lexer.h"
#include "ctl/template_nodes.h"
#include "ctl/template_number.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

using NodeKind = TemplateNode::Kind;
using NodePointer = TemplateNode::Pointer;
using TokenType = TemplateToken::Type;

NodePointer make_template_node(NodeKind kind, size_t at) { return std::make_unique<TemplateNode>(kind, at); }

std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  for (std::string_view name : split(text, '.')) names.emplace_back(name);
  return names;
}

NodePointer variable_node(size_t at, std::string_view text) {
  NodePointer node = make_template_node(NodeKind::variable, at);
  node->names = split_names(text);
  return node;
}

NodePointer field_node(size_t at, std::string_view text) {  // ".a.b"
  NodePointer node = make_template_node(NodeKind::field, at);
  node->names = split_names(text.substr(1));
  return node;
}

// Nothing but space in it.
bool is_empty_tree(const TemplateNode* node) {
  if (!node) return true;
  if (node->kind == NodeKind::text) return trim(node->text).empty();
  if (node->kind != NodeKind::list) return false;
  return std::all_of(node->children.begin(), node->children.end(),
                     [](const NodePointer& child) { return is_empty_tree(child.get()); });
}

// Parses one tree. Definitions in it have parsers of their own, over the same lexer.
class TreeParser {
 public:
  TreeParser(std::string name, ParsedTemplate& parsed, TemplateLexer& lexer, int& nesting)
      : name_(std::move(name)), parsed_(parsed), lexer_(lexer), nesting_(nesting) {}

  Result<void> parse();

 private:
  struct List {
    NodePointer list, end;  // `end` is an end or else node
  };

  TemplateToken next() {
    if (peeked_ > 0) --peeked_;
    else tokens_[0] = lexer_.next();
    return tokens_[size_t(peeked_)];
  }
  void back() { ++peeked_; }
  void back(TemplateToken first) { tokens_[1] = std::move(first), peeked_ = 2; }
  void back(TemplateToken first, TemplateToken second) {
    tokens_[1] = std::move(second), tokens_[2] = std::move(first), peeked_ = 3;
  }
  const TemplateToken& peek() {
    if (peeked_ == 0) tokens_[0] = lexer_.next(), peeked_ = 1;
    return tokens_[size_t(peeked_ - 1)];
  }
  TemplateToken next_word() {
    TemplateToken token = next();
    while (token.type == TokenType::space) token = next();
    return token;
  }
  TemplateToken peek_word() {
    TemplateToken token = next_word();
    back();
    return token;
  }

  Error wrong(const std::string& text) const {
    return Error(Code::invalid, "template: " + parsed_.name + ":" + std::to_string(tokens_[0].line) + ": " + text);
  }
  Error unexpected(const TemplateToken& token, const std::string& context) const;
  Result<TemplateToken> expect(TokenType type, const std::string& context);
  Result<void> add(NodePointer root);

  Result<void> parse_definition();
  Result<List> item_list();
  Result<NodePointer> text_or_action();
  Result<NodePointer> action();
  Result<NodePointer> loop_control(NodeKind kind, const TemplateToken& word);
  Result<NodePointer> else_control();
  Result<NodePointer> control(NodeKind kind);
  Result<NodePointer> block_control();
  Result<NodePointer> template_control();
  Result<std::string> template_name(const TemplateToken& token, const std::string& context);
  Result<NodePointer> pipeline(const std::string& context, TokenType end);
  Result<void> declarations(const std::string& context, TemplateNode& pipe);
  Result<void> check_pipeline(const TemplateNode& pipe, const std::string& context);
  Result<NodePointer> command();
  Result<NodePointer> operand();  // null where there is none
  Result<NodePointer> term();     // likewise
  Result<std::string> unquote(const TemplateToken& token);

  std::string name_;
  ParsedTemplate& parsed_;
  TemplateLexer& lexer_;
  int& nesting_;  // of all parsers
  std::array<TemplateToken, 3> tokens_;
  int peeked_ = 0;
  std::vector<std::string> variables_{"$"};
  size_t action_line_ = 0;
  int range_depth_ = 0;
};

const char* control_word(NodeKind kind) { return kind == NodeKind::if_ ? "if" : kind == NodeKind::with ? "with" : "range"; }

Error TreeParser::unexpected(const TemplateToken& token, const std::string& context) const {
  if (token.type != TokenType::error) return wrong("unexpected " + token.shown() + " in " + context);
  std::string extra;
  if (action_line_ != 0 && action_line_ != token.line) {
    extra = " started at " + parsed_.name + ":" + std::to_string(action_line_);
    if (!token.text.ends_with(" action")) extra.insert(0, " in action");
  }
  return wrong(token.text + extra);
}

Result<TemplateToken> TreeParser::expect(TokenType type, const std::string& context) {
  TemplateToken token = next_word();
  if (token.type != type) return unexpected(token, context);
  return token;
}

Result<std::string> TreeParser::unquote(const TemplateToken& token) {
  auto text = go_unquoted(token.text);
  if (!text) return wrong(text.error().text());
  return std::move(*text);
}

Result<void> TreeParser::add(NodePointer root) {
  auto& place = parsed_.trees[name_];
  if (is_empty_tree(place.get())) {
    place = std::move(root);
    return {};
  }
  if (!is_empty_tree(root.get())) return wrong("template: multiple definition of template " + go_quoted(name_));
  return {};
}

Result<void> TreeParser::parse() {
  NodePointer root = make_template_node(NodeKind::list, peek().at);
  while (peek().type != TokenType::end_of_text) {
    if (peek().type == TokenType::left_delimiter) {
      TemplateToken delimiter = next();
      if (next_word().type == TokenType::define) {
        TreeParser definition("definition", parsed_, lexer_, nesting_);
        TRY(definition.parse_definition());
        continue;
      }
      back(delimiter);
    }
    NodePointer node = TRY(text_or_action());
    if (node->kind == NodeKind::end || node->kind == NodeKind::else_) return wrong("unexpected " + node->shown());
    root->children.push_back(std::move(node));
  }
  return add(std::move(root));
}

Result<void> TreeParser::parse_definition() {
  const std::string context = "define clause";
  TemplateToken name = next_word();
  if (name.type != TokenType::string && name.type != TokenType::raw_string) return unexpected(name, context);
  name_ = TRY(unquote(name));
  TRY(expect(TokenType::right_delimiter, context));
  List list = TRY(item_list());
  if (list.end->kind != NodeKind::end) return wrong("unexpected " + list.end->shown() + " in " + context);
  return add(std::move(list.list));
}

Result<TreeParser::List> TreeParser::item_list() {
  NodePointer list = make_template_node(NodeKind::list, peek_word().at);
  while (peek_word().type != TokenType::end_of_text) {
    NodePointer node = TRY(text_or_action());
    if (node->kind == NodeKind::end || node->kind == NodeKind::else_) return List{std::move(list), std::move(node)};
    list->children.push_back(std::move(node));
  }
  return wrong("unexpected EOF");
}

Result<NodePointer> TreeParser::text_or_action() {
  TemplateToken token = next_word();
  if (token.type == TokenType::text) {
    NodePointer node = make_template_node(NodeKind::text, token.at);
    node->text = std::move(token.text);
    return node;
  }
  if (token.type != TokenType::left_delimiter) return unexpected(token, "input");
  action_line_ = token.line;
  auto node = action();
  action_line_ = 0;
  return node;
}

Result<NodePointer> TreeParser::action() {
  TemplateToken token = next_word();
  switch (token.type) {
    case TokenType::block: return block_control();
    case TokenType::break_: return loop_control(NodeKind::break_, token);
    case TokenType::continue_: return loop_control(NodeKind::continue_, token);
    case TokenType::else_: return else_control();
    case TokenType::end: {
      TemplateToken delimiter = TRY(expect(TokenType::right_delimiter, "end"));
      return make_template_node(NodeKind::end, delimiter.at);
    }
    case TokenType::if_: return control(NodeKind::if_);
    case TokenType::range: return control(NodeKind::range);
    case TokenType::template_: return template_control();
    case TokenType::with: return control(NodeKind::with);
    default: break;
  }
  back();
  NodePointer node = make_template_node(NodeKind::action, peek().at);
  node->pipe = TRY(pipeline("command", TokenType::right_delimiter));
  return node;
}

Result<NodePointer> TreeParser::loop_control(NodeKind kind, const TemplateToken& word) {
  std::string shown = "{{" + word.text + "}}";
  if (TemplateToken token = next_word(); token.type != TokenType::right_delimiter) return unexpected(token, shown);
  if (range_depth_ == 0) return wrong(shown + " outside {{range}}");
  return make_template_node(kind, word.at);
}

Result<NodePointer> TreeParser::else_control() {
  TemplateToken token = peek_word();
  if (token.type != TokenType::if_ && token.type != TokenType::with) token = TRY(expect(TokenType::right_delimiter, "else"));
  return make_template_node(NodeKind::else_, token.at);
}

Result<NodePointer> TreeParser::control(NodeKind kind) {
  const std::string context = control_word(kind);
  size_t variables = variables_.size();
  NodePointer pipe = TRY(pipeline(context, TokenType::right_delimiter));
  NodePointer node = make_template_node(kind, pipe->at);
  node->pipe = std::move(pipe);
  if (++nesting_ > kTemplateNestingMax) return wrong("max expression depth exceeded");
  if (kind == NodeKind::range) ++range_depth_;
  List list = TRY(item_list());
  if (kind == NodeKind::range) --range_depth_;
  node->body = std::move(list.list);
  if (list.end->kind == NodeKind::else_) {
    // {{else if}} is {{else}}{{if}}, with one {{end}} for both; {{else with}} likewise.
    TokenType same = kind == NodeKind::if_ ? TokenType::if_ : kind == NodeKind::with ? TokenType::with : TokenType::error;
    if (peek().type == same && same != TokenType::error) {
      (void)next();
      node->otherwise = make_template_node(NodeKind::list, list.end->at);
      NodePointer nested = TRY(control(kind));
      node->otherwise->children.push_back(std::move(nested));
    } else {
      List otherwise = TRY(item_list());
      if (otherwise.end->kind != NodeKind::end) return wrong("expected end; found " + otherwise.end->shown());
      node->otherwise = std::move(otherwise.list);
    }
  }
  --nesting_;
  variables_.resize(variables);
  return node;
}

Result<NodePointer> TreeParser::block_control() {
  const std::string context = "block clause";
  TemplateToken token = next_word();
  std::string name = TRY(template_name(token, context));
  NodePointer pipe = TRY(pipeline(context, TokenType::right_delimiter));
  if (++nesting_ > kTemplateNestingMax) return wrong("max expression depth exceeded");
  TreeParser block(name, parsed_, lexer_, nesting_);
  List list = TRY(block.item_list());
  if (list.end->kind != NodeKind::end) return wrong("unexpected " + list.end->shown() + " in " + context);
  TRY(block.add(std::move(list.list)));
  --nesting_;
  NodePointer node = make_template_node(NodeKind::template_, token.at);
  node->text = std::move(name);
  node->pipe = std::move(pipe);
  return node;
}

Result<NodePointer> TreeParser::template_control() {
  const std::string context = "template clause";
  TemplateToken token = next_word();
  NodePointer node = make_template_node(NodeKind::template_, token.at);
  node->text = TRY(template_name(token, context));
  if (next_word().type == TokenType::right_delimiter) return node;
  back();
  node->pipe = TRY(pipeline(context, TokenType::right_delimiter));
  return node;
}

Result<std::string> TreeParser::template_name(const TemplateToken& token, const std::string& context) {
  if (token.type != TokenType::string && token.type != TokenType::raw_string) return unexpected(token, context);
  return unquote(token);
}

Result<void> TreeParser::declarations(const std::string& context, TemplateNode& pipe) {
  while (peek_word().type == TokenType::variable) {
    TemplateToken variable = next_word();
    TemplateToken after = peek();
    TemplateToken token = peek_word();
    bool comma = token.type == TokenType::character && token.text == ",";
    if (token.type != TokenType::assign && token.type != TokenType::declare && !comma) {  // a variable as an operand
      if (after.type == TokenType::space) back(variable, after);
      else back(variable);
      return {};
    }
    (void)next_word();
    pipe.declared.push_back(variable_node(variable.at, variable.text));
    variables_.push_back(variable.text);
    if (!comma) {
      pipe.assigns = token.type == TokenType::assign;
      return {};
    }
    if (context != "range" || pipe.declared.size() >= 2) return wrong("too many declarations in " + context);
    TokenType follows = peek_word().type;
    if (follows != TokenType::variable && follows != TokenType::right_delimiter && follows != TokenType::right_parenthesis)
      return wrong("range can only initialize variables");
  }
  return {};
}

Result<NodePointer> TreeParser::pipeline(const std::string& context, TokenType end) {
  NodePointer pipe = make_template_node(NodeKind::pipe, peek_word().at);
  TRY(declarations(context, *pipe));
  for (;;) {
    TemplateToken token = next_word();
    if (token.type == end) {
      TRY(check_pipeline(*pipe, context));
      return pipe;
    }
    switch (token.type) {
      case TokenType::boolean:
      case TokenType::char_constant:
      case TokenType::complex:
      case TokenType::dot:
      case TokenType::field:
      case TokenType::identifier:
      case TokenType::number:
      case TokenType::nil:
      case TokenType::raw_string:
      case TokenType::string:
      case TokenType::variable:
      case TokenType::left_parenthesis: break;
      default: return unexpected(token, context);
    }
    back();
    NodePointer one = TRY(command());
    pipe->children.push_back(std::move(one));
  }
}

Result<void> TreeParser::check_pipeline(const TemplateNode& pipe, const std::string& context) {
  if (pipe.children.empty()) return wrong("missing value for " + context);
  for (size_t i = 1; i < pipe.children.size(); ++i) {
    switch (pipe.children[i]->children.front()->kind) {
      case NodeKind::boolean:
      case NodeKind::dot:
      case NodeKind::nil:
      case NodeKind::number:
      case NodeKind::string: return wrong("non executable command in pipeline stage " + std::to_string(i + 1));
      default: break;
    }
  }
  return {};
}

Result<NodePointer> TreeParser::command() {
  NodePointer command = make_template_node(NodeKind::command, peek_word().at);
  for (;;) {
    (void)peek_word();  // skips spaces
    NodePointer one = TRY(operand());
    if (one) command->children.push_back(std::move(one));
    TemplateToken token = next();
    if (token.type == TokenType::space) continue;
    if (token.type == TokenType::right_delimiter || token.type == TokenType::right_parenthesis) back();
    else if (token.type != TokenType::pipe) return unexpected(token, "operand");
    break;
  }
  if (command->children.empty()) return wrong("empty command");
  return command;
}

Result<NodePointer> TreeParser::operand() {
  NodePointer node = TRY(term());
  if (!node || peek().type != TokenType::field) return node;
  size_t at = peek().at;
  std::string fields;
  while (peek().type == TokenType::field) fields += next().text;
  switch (node->kind) {
    case NodeKind::field: return field_node(at, node->shown() + fields);
    case NodeKind::variable: return variable_node(at, node->shown() + fields);
    case NodeKind::boolean:
    case NodeKind::string:
    case NodeKind::number:
    case NodeKind::nil:
    case NodeKind::dot: return wrong("unexpected . after term " + go_quoted(node->shown()));
    default: break;
  }
  NodePointer chain = make_template_node(NodeKind::chain, at);
  chain->children.push_back(std::move(node));
  chain->names = split_names(std::string_view(fields).substr(1));
  return chain;
}

Result<NodePointer> TreeParser::term() {
  TemplateToken token = next_word();
  switch (token.type) {
    case TokenType::identifier: {
      if (!is_template_function(token.text)) return wrong("function " + go_quoted(token.text) + " not defined");
      NodePointer node = make_template_node(NodeKind::identifier, token.at);
      node->text = std::move(token.text);
      return node;
    }
    case TokenType::dot: return make_template_node(NodeKind::dot, token.at);
    case TokenType::nil: return make_template_node(NodeKind::nil, token.at);
    case TokenType::variable: {
      NodePointer node = variable_node(token.at, token.text);
      if (std::find(variables_.begin(), variables_.end(), node->names.front()) == variables_.end())
        return wrong("undefined variable " + go_quoted(node->names.front()));
      return node;
    }
    case TokenType::field: return field_node(token.at, token.text);
    case TokenType::boolean: {
      NodePointer node = make_template_node(NodeKind::boolean, token.at);
      node->flag = token.text == "true";
      return node;
    }
    case TokenType::char_constant:
    case TokenType::complex:
    case TokenType::number: {
      auto number = parse_template_number(token.text, token.type);
      if (!number) return wrong(number.error().text());
      NodePointer node = make_template_node(NodeKind::number, token.at);
      node->text = std::move(token.text);
      node->number = number->value;
      node->overflows = number->overflows;
      return node;
    }
    case TokenType::left_parenthesis: {
      if (++nesting_ > kTemplateNestingMax) return wrong("max expression depth exceeded");
      auto pipe = pipeline("parenthesized pipeline", TokenType::right_parenthesis);
      --nesting_;
      return pipe;
    }
    case TokenType::string:
    case TokenType::raw_string: {
      NodePointer node = make_template_node(NodeKind::string, token.at);
      node->value = TRY(unquote(token));
      node->text = std::move(token.text);
      return node;
    }
    default: back(); return NodePointer();
  }
}

}  // namespace

std::string TemplateNode::shown() const {
  auto all = [](const std::vector<NodePointer>& nodes, const char* between) {
    std::string out;
    for (const auto& node : nodes) {
      bool parentheses = node->kind == NodeKind::pipe;
      out.append(out.empty() ? "" : between).append(parentheses ? "(" : "").append(node->shown()).append(parentheses ? ")" : "");
    }
    return out;
  };
  switch (kind) {
    case NodeKind::text:
    case NodeKind::identifier:
    case NodeKind::number:
    case NodeKind::string: return text;
    case NodeKind::action: return "{{" + pipe->shown() + "}}";
    case NodeKind::boolean: return flag ? "true" : "false";
    case NodeKind::chain: return all(children, "") + "." + join(names, ".");
    case NodeKind::command: return all(children, " ");
    case NodeKind::dot: return ".";
    case NodeKind::field: return "." + join(names, ".");
    case NodeKind::variable: return join(names, ".");
    case NodeKind::nil: return "nil";
    case NodeKind::pipe: return (declared.empty() ? "" : all(declared, ", ") + (assigns ? " = " : " := ")) + all(children, " | ");
    case NodeKind::template_: return "{{template " + go_quoted(text) + (pipe ? " " + pipe->shown() : "") + "}}";
    case NodeKind::break_: return "{{break}}";
    case NodeKind::continue_: return "{{continue}}";
    case NodeKind::else_: return "{{else}}";
    case NodeKind::end: return "{{end}}";
    case NodeKind::list: return all(children, "");
    case NodeKind::if_:
    case NodeKind::range:
    case NodeKind::with:
      return std::string("{{") + control_word(kind) + " " + pipe->shown() + "}}" + body->shown() +
             (otherwise ? "{{else}}" + otherwise->shown() : "") + "{{end}}";
  }
  return {};
}

Result<ParsedTemplate> parse_template(std::string name, std::string text) {
  if (text.size() > kTemplateBytesMax)
    return Error(Code::too_large, "template: " + name + ": longer than " + std::to_string(kTemplateBytesMax) + " bytes");
  ParsedTemplate parsed{std::move(name), std::move(text), {}};
  TemplateLexer lexer(parsed.text);
  int nesting = 0;
  TreeParser parser(parsed.name, parsed, lexer, nesting);
  TRY(parser.parse());
  return parsed;
}

}  // namespace coracle::ctl
