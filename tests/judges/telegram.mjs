// telegram-api-mock-server as a library; the argument is the address of its package. Prints its port, ends with its input.
const { TelegramApiMockServer } = await import(process.argv[2]);
const server = new TelegramApiMockServer({ host: "127.0.0.1", port: 0, mode: "mock" });
await server.start();
console.log(server.getAddress().port);
process.stdin.resume().on("end", () => process.exit(0));
