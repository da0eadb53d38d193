// Line protocol between the judge and a driver; protocol.py describes it.
import { createInterface } from 'node:readline';

export const [mode, baseURL, apiKey] = process.argv.slice(2);

export const personSchema = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer' } },
  required: ['name', 'age'],
  additionalProperties: false,
};

const fields = { terminal: 'command', get_weather: 'city' };

export const parameters = (name) => ({
  type: 'object',
  properties: { [fields[name]]: { type: 'string' } },
  required: [fields[name]],
  additionalProperties: false,
});

// The tools that run at the client. Every run is recorded.
export class ClientTools {
  runs = [];

  run(name, given) {
    this.runs.push({ name, arguments: given });
    return name === 'terminal' ? `the client ran ${given.command}` : `${given.city} is sunny`;
  }
}

let streaming = false;

const write = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

// Reports the first text of a stream.
export function onChunk() {
  if (!streaming) {
    streaming = true;
    write({ chunk: true });
  }
}

export async function serve(answer) {
  console.log = console.info = console.warn = console.error;
  write({ ready: true });
  for await (const line of createInterface({ input: process.stdin })) {
    try {
      const found = await answer(JSON.parse(line));
      write({ text: '', runs: [], parsed: null, ...found });
    } catch (error) {
      console.error(error);
      write({ error: `${error.constructor.name}: ${error.message}` });
    }
    streaming = false;
  }
}
