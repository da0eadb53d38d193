// Driver of the openai package of npm: chat completions and responses.
import OpenAI from 'openai';
import { ClientTools, apiKey, baseURL, mode, onChunk, parameters, personSchema, serve } from './protocol.mjs';

const client = new OpenAI({ baseURL, apiKey });
const histories = new Map();

function historyOf(conversation) {
  if (!histories.has(conversation)) histories.set(conversation, []);
  return histories.get(conversation);
}

function chatContent({ text, picture }) {
  return picture ? [{ type: 'text', text }, { type: 'image_url', image_url: { url: picture } }] : text;
}

async function chatMessage(ask, body) {
  const options = { headers: ask.headers };
  if (!ask.stream) return (await client.chat.completions.create(body, options)).choices[0].message;
  const stream = client.chat.completions.stream(body, options);
  for await (const chunk of stream) {
    if (!chunk.choices[0]?.delta?.content) continue;
    onChunk();
    if (ask.abandon) {
      stream.abort();
      return null;
    }
  }
  return stream.finalMessage();
}

async function chat(ask) {
  const messages = historyOf(ask.conversation);
  messages.push({ role: 'user', content: chatContent(ask) });
  const body = { model: 'hermes', messages };
  if (ask.tools.length) {
    body.tools = ask.tools.map((name) => ({ type: 'function', function: { name, parameters: parameters(name) } }));
  }
  if (ask.structured) {
    const json_schema = { name: 'person', schema: personSchema, strict: true };
    const completion = await client.chat.completions.parse(
      { ...body, response_format: { type: 'json_schema', json_schema } },
      { headers: ask.headers },
    );
    return { parsed: JSON.parse(completion.choices[0].message.content) };
  }
  const tools = new ClientTools();
  for (;;) {
    const message = await chatMessage(ask, body);
    if (message === null) return {};
    messages.push(message);
    if (!message.tool_calls?.length) return { text: message.content, runs: tools.runs };
    for (const call of message.tool_calls) {
      const content = tools.run(call.function.name, JSON.parse(call.function.arguments));
      messages.push({ role: 'tool', tool_call_id: call.id, content });
    }
  }
}

function responsesContent({ text, picture }) {
  if (!picture) return text;
  return [{ type: 'input_text', text }, { type: 'input_image', image_url: picture, detail: 'auto' }];
}

async function oneResponse(ask, body) {
  const options = { headers: ask.headers };
  if (!ask.stream) return client.responses.create(body, options);
  const stream = client.responses.stream(body, options);
  for await (const event of stream) {
    if (event.type !== 'response.output_text.delta') continue;
    onChunk();
    if (ask.abandon) {
      stream.abort();
      return null;
    }
  }
  return stream.finalResponse();
}

// Keeps the history itself: all output items go back as input.
async function responses(ask) {
  const input = historyOf(ask.conversation);
  input.push({ role: 'user', content: responsesContent(ask) });
  const body = { model: 'hermes', input };
  if (ask.tools.length) {
    body.tools = ask.tools.map((name) => ({ type: 'function', name, parameters: parameters(name), strict: true }));
  }
  if (ask.structured) {
    const format = { type: 'json_schema', name: 'person', schema: personSchema, strict: true };
    const response = await client.responses.parse({ ...body, text: { format } }, { headers: ask.headers });
    return { parsed: response.output_parsed ?? JSON.parse(response.output_text) };
  }
  const tools = new ClientTools();
  for (;;) {
    const response = await oneResponse(ask, body);
    if (response === null) return {};
    input.push(...response.output);
    const calls = response.output.filter((item) => item.type === 'function_call');
    if (!calls.length) return { text: response.output_text, runs: tools.runs };
    for (const call of calls) {
      const output = tools.run(call.name, JSON.parse(call.arguments));
      input.push({ type: 'function_call_output', call_id: call.call_id, output });
    }
  }
}

await serve(mode === 'chat' ? chat : responses);
