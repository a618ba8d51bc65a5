/** A process that floods a door as fast as it can: `node flooder.ts SOCKET CONNECTIONS [http]`. Says one word when all are at it. */
import { once } from "node:events";
import { createConnection } from "node:net";

const [socketPath = "", connections = "1", language] = process.argv.slice(2);
const call = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const request = `POST /rpc HTTP/1.1\r\nHost: door\r\nContent-Length: ${call.length}\r\n\r\n${call}`;
const burst = (language === "http" ? request : `${call}\n`).repeat(500);

async function flood(): Promise<void> {
  const socket = createConnection(socketPath);
  socket.resume();
  await once(socket, "connect");
  const fill = () => {
    while (socket.write(burst));
  };
  socket.on("drain", fill);
  fill();
}

await Promise.all(Array.from({ length: Number(connections) }, flood));
process.send?.("flooding");
