// Driver of the AI SDK: the OpenAI provider (chat, responses) and the OpenAI-compatible provider.
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai';
import { ClientTools, apiKey, baseURL, mode, onChunk, parameters, personSchema, serve } from './protocol.mjs';

const openai = createOpenAI({ baseURL, apiKey });
const compatible = createOpenAICompatible({ name: 'hermes', baseURL, apiKey, supportsStructuredOutputs: true });
const model = { chat: () => openai.chat('hermes'), responses: () => openai('hermes'), compatible: () => compatible('hermes') }[mode]();
const histories = new Map();

function content({ text, picture }) {
  if (!picture) return text;
  const [, mediaType, data] = picture.match(/^data:([^;]+);base64,(.*)$/);
  return [{ type: 'text', text }, { type: 'file', mediaType, data }];
}

function offered(names, tools) {
  return Object.fromEntries(
    names.map((name) => [
      name,
      tool({ inputSchema: jsonSchema(parameters(name)), execute: async (given) => tools.run(name, given) }),
    ]),
  );
}

async function streamed(ask, options, history) {
  const stop = new AbortController();
  let failure = null;
  const result = streamText({ ...options, abortSignal: stop.signal, onError: ({ error }) => (failure = error) });
  for await (const part of result.fullStream) {
    if (part.type === 'error') throw part.error;
    if (part.type === 'tool-error') throw part.error;
    if (part.type !== 'text-delta') continue;
    onChunk();
    if (ask.abandon) {
      stop.abort();
      return {};
    }
  }
  if (failure) throw failure;
  history.push(...(await result.response).messages);
  return { text: await result.text };
}

async function answer(ask) {
  if (!histories.has(ask.conversation)) histories.set(ask.conversation, []);
  const history = histories.get(ask.conversation);
  history.push({ role: 'user', content: content(ask) });
  const tools = new ClientTools();
  const options = { model, messages: history, headers: ask.headers, stopWhen: stepCountIs(5) };
  if (ask.tools.length) options.tools = offered(ask.tools, tools);
  if (ask.structured) {
    const schema = jsonSchema(personSchema);
    return { parsed: (await generateText({ ...options, output: Output.object({ schema }) })).output };
  }
  if (ask.stream) return { ...(await streamed(ask, options, history)), runs: tools.runs };
  const result = await generateText(options);
  history.push(...result.response.messages);
  return { text: result.text, runs: tools.runs };
}

await serve(answer);
