package workergrpc

// Speak makes the server speak a version that is not out yet. It must not serve yet.
func (s *Server) Speak(protocol uint32) { s.protocol = protocol }
